"""Finds a field of the context that `.set(…)` names and that there is not, before anything runs.

No type checker sees that name: the fields of a model are the arguments of its constructor, and
nothing in Python's types takes some of them by name. So the build reads the author's functions. A
call counts only when it is `.set(…)` or `.model_copy(update={…})` on the function's first parameter,
which the kernel gives the context, on a context within it, on what such a call returned, or on
`self` in a method of the context itself. The compiled function is looked at first,
and its source only when a name in it is no field; where there is no source, nothing is said here
and the run faults with the same words.

Source: spec/authoring.md §2.14, design §4.2.
"""

from __future__ import annotations

import ast
import difflib
import dis
import linecache
import types
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import PurePath
from typing import Any, Final, NamedTuple, Union, get_args, get_origin

from .run_data import Context

Position = tuple[int, int]
"""Line, and the column in bytes."""

_SETS: Final = frozenset({"set", "model_copy"})
_ASKS: Final = frozenset({"isinstance", "hasattr", "type"})
"""A function that serves several contexts asks which one it has."""


def unknown(function: Callable[..., Any] | None, context: type[Context]) -> Iterator[str]:
    """Yield each field that a function sets on its context and that there is not, with the line."""
    called: Any = getattr(function, "jr2_called", function)
    if not isinstance(called, types.FunctionType) or context.set is not Context.set:
        return
    code = called.__code__
    if code.co_argcount == 0 or not _SETS.intersection(code.co_names) or _fits(code, context):
        return
    first = code.co_varnames[0]
    if _is_bound_anew(code, first) or _ASKS.intersection(code.co_names):
        return
    text = "".join(linecache.getlines(code.co_filename, called.__globals__))
    compiled = {
        (line, column)
        for line, _, column, _ in code.co_positions()
        if line is not None and column is not None
    }
    for call in _calls(text):
        if call.on != first or call.place not in compiled:
            continue
        meant = _inside(context, call.path)
        if meant is None:
            continue
        for name in call.names:
            if name not in meant.__pydantic_fields__:
                file = "/".join(PurePath(code.co_filename).parts[-2:])
                yield f"{file} line {call.place[0]}: {said(meant, name)}"


def unknown_in_methods(context: type[Context]) -> Iterator[str]:
    """Yield the same for what the methods of a context set on themselves."""
    for owner in context.__mro__:
        if owner is Context:
            return
        for member in vars(owner).values():
            yield from unknown(member, context)


def said(context: type[Context], name: str) -> str:
    """Say that a context has no such field, with the nearest one and all that there are."""
    fields = list(context.__pydantic_fields__)
    near = difflib.get_close_matches(name, fields, n=1, cutoff=0.7)
    meant = f" — did you mean {near[0]!r}?" if near else ""
    listed = ", ".join(fields) or "none"
    return f"{context.__name__} has no field {name!r}{meant} (fields: {listed})"


class _Call(NamedTuple):
    """A call of `.set(…)`, or of `.model_copy(update={…})`, in a source."""

    on: str
    place: Position
    """Of the name that it is called on."""
    path: tuple[str, ...]
    """The fields between that name and the call."""
    names: tuple[str, ...]


def _inside(context: type[Context], path: Iterable[str]) -> type[Context] | None:
    """Return the context that fields of a context lead to, or `None` when that is not known."""
    found = context
    for step in path:
        field = found.__pydantic_fields__.get(step)
        said = None if field is None else field.annotation
        kinds = get_args(said) if get_origin(said) in (Union, types.UnionType) else (said,)
        contexts = [one for one in kinds if isinstance(one, type) and issubclass(one, Context)]
        if len(contexts) != 1 or contexts[0].set is not Context.set:
            return None
        found = contexts[0]
    return found


def _is_bound_anew(code: types.CodeType, name: str) -> bool:
    """Whether a function gives its parameter another value, of which nothing is known."""
    if any(
        one.argval == name and one.opname.startswith(("STORE_", "DELETE_"))
        for one in dis.get_instructions(code)
    ):
        return True
    return any(
        name in inner.co_freevars and _is_bound_anew(inner, name)
        for inner in code.co_consts
        if isinstance(inner, types.CodeType)
    )


def _fits(code: types.CodeType, context: type[Context]) -> bool:
    """Whether all names of arguments in a compiled function are fields: there is nothing to find."""
    known = set(context.__pydantic_fields__)
    if "model_copy" in code.co_names or any(_inside(context, [field]) for field in known):
        return False
    names = {
        name
        for constant in code.co_consts
        if isinstance(constant, tuple)
        for name in constant
        if isinstance(name, str)
    }
    return names <= known


@lru_cache(maxsize=16)
def _calls(text: str) -> tuple[_Call, ...]:
    """Return the calls that set fields in a source; none where it does not parse."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: list[_Call] = []
    for node in ast.walk(tree):
        call = _setting(node)
        if call is not None:
            on, path = _receiver(call[0])
            if on is not None:
                found.append(_Call(on.id, (on.lineno, on.col_offset), path, call[1]))
    return tuple(found)


def _setting(node: ast.AST) -> tuple[ast.expr, tuple[str, ...]] | None:
    """Return what a call sets fields of, and their names, or `None` for what is no such call."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    if node.func.attr == "set":
        return node.func.value, tuple(one.arg for one in node.keywords if one.arg is not None)
    if node.func.attr != "model_copy":
        return None
    updates = [one.value for one in node.keywords if one.arg == "update"]
    keys = [key for one in updates if isinstance(one, ast.Dict) for key in one.keys]
    names = [key.value for key in keys if isinstance(key, ast.Constant)]
    return node.func.value, tuple(name for name in names if isinstance(name, str))


def _receiver(node: ast.expr) -> tuple[ast.Name | None, tuple[str, ...]]:
    """Return the name that a chain of fields and of calls that set some begins with, and the fields."""
    path: list[str] = []
    while not isinstance(node, ast.Name):
        call = _setting(node)
        if call is not None:
            node = call[0]
        elif isinstance(node, ast.Attribute):
            path.insert(0, node.attr)
            node = node.value
        else:
            return None, ()
    return node, tuple(path)
