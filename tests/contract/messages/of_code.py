"""The messages of the code: each text that a person reads after `refusing: `, `error: ` or `warning: `.

They are read from the syntax tree of the sources, not from a list: a message is the argument of
an exception that descends from `Jr2Error`, the argument of a reporter's `warning`, or a text that
starts with `warning: `, `refusing: `, `error: ` or `diagnosis: `. A value that is only known when
the program runs is a hole. A constant of `jr2.names` or of the module is its text.

A message is its first line; the lines below it are evidence, and no page lists those.
"""

from __future__ import annotations

import ast
import itertools
import re
import types
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jr2 import errors, names

HOLE: Final = "\0"
"""Stands in a template for what only a run knows."""
PREFIXES: Final = ("refusing: ", "error: ", "warning: ", "diagnosis: ")
_FIELD: Final = re.compile(r"\{\w*\}")
_MOST: Final = 48
"""A text with more forms than this keeps holes where its forms differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the code.

    Args:
        path: the source, relative to the repository.
        line: where the text starts to be made.
        forms: its templates: one for each way through its conditions.
    """

    path: str
    line: int
    forms: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {max(self.forms, key=len).replace(HOLE, '<…>')}"


@dataclass(slots=True)
class Source:
    """A module: its tree, its functions, its classes and what its names mean.

    The tree is walked once: `scoped` has each node with the innermost function around it.
    """

    path: str
    scoped: tuple[tuple[ast.AST, ast.AST], ...]
    functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)
    bases: dict[str, set[str]] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path, root: Path) -> Source:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        source = cls(path=str(path.relative_to(root)), scoped=tuple(_scoped(tree)))
        for _, node in source.scoped:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                source.functions.setdefault(node.name, node)
            elif isinstance(node, ast.ClassDef):
                source.bases[node.name] = {_last(base) for base in node.bases}
        for statement in tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    source.constants[name] = value
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    source.constants[name] = value
                case _:
                    pass
        return source


def exceptions(sources: Iterable[Source]) -> dict[str, str]:
    """Return each class below `Jr2Error`, with what is printed before its message."""
    parents: dict[str, set[str]] = {}
    for source in sources:
        for name, bases in source.bases.items():
            parents.setdefault(name, set()).update(bases)
    known = {
        kind.__name__: kind.default_prefix
        for kind in (errors.Jr2Error, errors.Refusal, errors.StepFailed, errors.Aborted)
    }
    while more := {
        name: known[base]
        for name, bases in parents.items()
        for base in bases
        if base in known and name not in known
    }:
        known |= more
    return known


def messages(sources: Sequence[Source]) -> list[Message]:
    """Return each message of the sources, in the order of the files."""
    raised = exceptions(sources)
    shared = _shared_functions(sources)
    # A name that is an error in one module and another thing in the next means it at home only.
    other = {
        name
        for source in sources
        for name, bases in source.bases.items()
        if name in raised and name != "Jr2Error" and not bases & raised.keys()
    }
    found: list[Message] = []
    for source in sources:
        here = {
            name: prefix
            for name, prefix in raised.items()
            if name not in other or source.bases.get(name, set()) & raised.keys()
        }
        found += _of(source, here, shared)
    return found


def texts(sources: Sequence[Source]) -> set[str]:
    """Return each first line of any text of the sources: what a page may quote of them."""
    shared = _shared_functions(sources)
    found: set[str] = set()
    for source in sources:
        alone = {id(node.value) for _, node in source.scoped if isinstance(node, ast.Expr)}
        for scope, node in source.scoped:
            # A string that stands alone is a docstring, and a text has more than one word.
            if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in alone:
                forms = Reading(source, scope, shared).forms(node)
                found |= {form.split("\n")[0] for form in forms if form.strip().count(" ")}
    return found


def _of(
    source: Source, raised: Mapping[str, str], shared: Mapping[str, tuple[Source, ast.AST]]
) -> Iterator[Message]:
    seen: set[tuple[int, int]] = set()
    for scope, node in source.scoped:
        found = _message_of(node, raised) or _passed_on(node, source, raised)
        if found is None or (found[1].lineno, found[1].col_offset) in seen:
            continue
        prefix, text = found
        seen.add((text.lineno, text.col_offset))
        forms = Reading(source, scope, shared).forms(text)
        lines = dict.fromkeys(_with(prefix, form.split("\n")[0]) for form in forms)
        plain = tuple(line for line in lines if says_something(line))
        if plain:
            yield Message(path=source.path, line=text.lineno, forms=plain)


def says_something(form: str) -> bool:
    """Say whether a template has words of its own, and does not only pass on another text."""
    words = form
    for prefix in PREFIXES:
        words = words.removeprefix(prefix)
    return sum(character.isalpha() for character in words.replace(HOLE, " ")) >= 2


def _with(prefix: str, form: str) -> str:
    return form if form.startswith(PREFIXES) else prefix + form


def _message_of(node: ast.AST, raised: Mapping[str, str]) -> tuple[str, ast.expr] | None:
    """Return what stands before the text that a node says, and its expression; or `None`."""
    if isinstance(node, ast.Call):
        name = _last(node.func)
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        text = node.args[0] if node.args else given.get("message")
        if text is None or isinstance(text, ast.Starred):
            return None
        match given.get("prefix"):
            case ast.Constant(value=str(prefix)):
                return (prefix, text) if name in raised or name == "Problem" else None
            case _:
                pass
        if name in raised:
            return raised[name], text
        if name == "error" and isinstance(node.func, ast.Attribute):
            return "error: ", text
        return ("", text) if name == "warning" else None
    if isinstance(node, ast.Constant | ast.JoinedStr) and _start(node).startswith(PREFIXES):
        return "", node
    return None


def _passed_on(
    node: ast.AST, source: Source, raised: Mapping[str, str]
) -> tuple[str, ast.expr] | None:
    """Return the same for a call of the module's own function that says its `message`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    function = source.functions.get(node.func.id)
    taken = [argument.arg for argument in function.args.args] if function else []
    if function is None or "message" not in taken or taken.index("message") >= len(node.args):
        return None
    for inside in ast.walk(function):
        said = _message_of(inside, raised)
        if said is not None and isinstance(said[1], ast.Name) and said[1].id == "message":
            return said[0], node.args[taken.index("message")]
    return None


def _start(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text
        case _:
            return ""


def _scoped(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield each node with the innermost function around it; what is outermost comes first."""
    todo: deque[tuple[ast.AST, ast.AST]] = deque([(tree, tree)])
    while todo:
        scope, node = todo.popleft()
        inner = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            todo.append((node if inner else scope, child))
            yield todo[-1]


def _shared_functions(sources: Sequence[Source]) -> dict[str, tuple[Source, ast.AST]]:
    """Return the functions whose name only one source has, so that a call says which it is."""
    found: dict[str, list[tuple[Source, ast.AST]]] = {}
    for source in sources:
        for name, function in source.functions.items():
            found.setdefault(name, []).append((source, function))
    return {name: places[0] for name, places in found.items() if len(places) == 1}


def _last(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return _last(value)
        case _:
            return ""


class Reading:
    """Reads expressions of one function as templates."""

    def __init__(
        self,
        source: Source,
        scope: ast.AST,
        shared: Mapping[str, tuple[Source, ast.AST]],
        open_: frozenset[str] = frozenset(),
        arguments: Mapping[str, Sequence[ast.expr]] = types.MappingProxyType({}),
    ) -> None:
        self.source, self.scope, self.shared, self.open = source, scope, shared, open_
        self.arguments = arguments

    def forms(self, node: ast.expr) -> list[str]:
        """Return the templates of an expression; `[HOLE]` when nothing is known of it."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.Constant(value=int(number)):
                return [str(number)]
            case ast.JoinedStr(values=values):
                return self._product(values)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self._inner(value)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._product([left, right])
            case ast.IfExp(body=body, orelse=orelse):
                return [*self.forms(body), *self.forms(orelse)]
            case ast.BoolOp(values=values):
                return [form for value in values for form in self.forms(value)]
            case ast.Attribute(value=ast.Name(id="names"), attr=name):
                constant = getattr(names, name, None)
                return [constant] if isinstance(constant, str) else [HOLE]
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str(between)), attr="join"),
                args=[ast.List(elts=elements) | ast.Tuple(elts=elements)],
            ) if elements:
                if between == "\n":
                    return self.forms(elements[0])
                return self._product(_between(elements, between))
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value="\n"), attr="join"),
                args=[ast.Name(id=name)],
            ):
                return self._name(name)
            case ast.Call(func=ast.Attribute(value=value, attr="format")):
                return [_FIELD.sub(HOLE, form) for form in self.forms(value)]
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                return self._call(name)
            case ast.Name(id=name):
                return self._name(name)
            case _:
                return [HOLE]

    def _inner(self, value: ast.expr) -> list[str]:
        """Return the forms of a value inside a text, where a long or unknown one is a hole."""
        found = self.forms(value)
        return found if len(found) <= 12 and all("\n" not in form for form in found) else [HOLE]

    def _product(self, parts: Sequence[ast.expr]) -> list[str]:
        each = [self.forms(part) for part in parts]
        count = 1
        for forms in each:
            count *= len(forms)
        if count > _MOST:
            each = [forms if len(forms) == 1 else [HOLE] for forms in each]
        return ["".join(chosen) for chosen in itertools.product(*each)]

    def _call(self, name: str) -> list[str]:
        """Return what a function of the project returns as text."""
        place = self.shared.get(name)
        if name in self.source.functions:
            place = (self.source, self.source.functions[name])
        if place is None or name in self.open:
            return [HOLE]
        source, function = place
        reading = Reading(source, function, self.shared, self.open | {name})
        lists = {
            node.value.id
            for node in ast.walk(function)
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Name)
        }
        returned = [value for node in ast.walk(function) for value in _given_by(node, lists)]
        return list(dict.fromkeys(f for value in returned for f in reading.forms(value))) or [HOLE]

    def _name(self, name: str) -> list[str]:
        """Return what a name of the function or of the module was given."""
        if name in self.open:
            return [HOLE]
        given: list[ast.expr] = [*self.arguments.get(name, ())]
        for node in ast.walk(self.scope):
            match node:
                case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                    given.append(value)
                case ast.AnnAssign(target=ast.Name(id=found), value=ast.expr() as value) if (
                    found == name
                ):
                    given.append(value)
                case (
                    ast.NamedExpr(target=ast.Name(id=found), value=value)
                    | ast.For(target=ast.Name(id=found), iter=value)
                    | ast.comprehension(target=ast.Name(id=found), iter=value)
                ) if found == name:
                    given.append(value)
                case _:
                    pass
        if not given and name in self.source.constants and not self._is_parameter(name):
            given = [self.source.constants[name]]
        reading = Reading(self.source, self.scope, self.shared, self.open | {name}, self.arguments)
        found_forms = list(dict.fromkeys(f for value in given for f in reading._list(value)))
        return found_forms or [HOLE]

    def _list(self, value: ast.expr) -> list[str]:
        """Return the forms of a text, or of the first line of a list of lines."""
        if isinstance(value, ast.List | ast.Tuple) and value.elts:
            return self.forms(value.elts[0])
        return self.forms(value)

    def _is_parameter(self, name: str) -> bool:
        return isinstance(self.scope, ast.FunctionDef | ast.AsyncFunctionDef) and any(
            argument.arg == name
            for argument in (*self.scope.args.args, *self.scope.args.kwonlyargs)
        )


def _given_by(node: ast.AST, lists: Collection[str]) -> Iterator[ast.expr]:
    """Yield what a function gives at a node: a value returned or yielded, or one for its list."""
    match node:
        case ast.Return(value=ast.expr() as value) | ast.Yield(value=ast.expr() as value):
            yield value
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value]) if (
            name in lists
        ):
            yield value
        case _:
            pass


def _between(elements: Sequence[ast.expr], text: str) -> list[ast.expr]:
    parts: list[ast.expr] = []
    for element in elements:
        parts += [ast.Constant(value=text), element] if parts else [element]
    return parts
