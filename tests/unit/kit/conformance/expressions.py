"""A small part of ECMAScript: the expressions and assignments that the W3C cases are written with.

Values are those of JSON, and `UNDEFINED`. What the cases use beyond that (functions, DOM, regular
expressions) raises `Unsupported`, so that a case which needs it is left out by name and never
passes by accident. What a real engine would raise is `ScriptError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final


class ScriptError(Exception):
    """The expression fails in any engine: an unknown name, a member of undefined, bad syntax."""


class Unsupported(Exception):
    """The expression needs a part of the language that is not here."""


class Undefined:
    """The one value `undefined`."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED: Final = Undefined()

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<text>'[^']*'|\"[^\"]*\")|(?P<name>[A-Za-z_$][\w$]*)"
    r"|(?P<op>===|!==|\+\+|\+=|==|!=|<=|>=|&&|\|\||[-+*/%<>!=()\[\]{},.:;?|]))"
)
_BINARY: Final = (
    ("||",),
    ("&&",),
    ("|",),
    ("===", "!==", "==", "!="),
    ("<", ">", "<=", ">=", "in", "instanceof"),
    ("+", "-"),
    ("*", "/", "%"),
)


class Scope:
    """What names stand for while an expression is evaluated.

    Args:
        data: the data model; a declared name without a value is `UNDEFINED`.
        system: names that a script reads and never writes.
        functions: what can be called by its name.
    """

    def __init__(
        self,
        data: dict[str, Any],
        system: Mapping[str, Any],
        functions: dict[str, Callable[..., Any]],
    ) -> None:
        self.data = data
        self.system = system
        self.functions = functions

    def read(self, name: str) -> Any:
        """Return what a name stands for."""
        if name in self.system:
            return self.system[name]
        if name in self.data:
            return self.data[name]
        raise ScriptError(f"{name} is not defined")


def evaluate(source: str, scope: Scope) -> Any:
    """Return the value of one expression."""
    parser = _Parser(source)
    value = parser.expression()(scope)
    parser.end()
    return value


def assign(location: str, value: Any, scope: Scope) -> None:
    """Write a value to a place such as `Var1` or `Var1.bar`; the name must be declared."""
    path = re.fullmatch(r"\s*([A-Za-z_$][\w$]*)((?:\.[A-Za-z_$][\w$]*)*)\s*", location)
    if path is None:
        raise ScriptError(f"{location!r} is no place")
    name, members = path[1], path[2].split(".")[1:]
    if name in scope.system or name not in scope.data:
        raise ScriptError(f"{name} cannot be written")
    if not members:
        scope.data[name] = value
        return
    holder = scope.data[name]
    for member in members[:-1]:
        holder = _member(holder, member)
    if not isinstance(holder, dict):
        raise ScriptError(f"{location!r} is no place")
    holder[members[-1]] = value


def run(source: str, scope: Scope) -> None:
    """Run a script of assignments and `var` declarations, which declare in the data model."""
    if re.search(r"\bfunction\b|\breturn\b", source):
        raise Unsupported("functions")
    for statement in re.sub(r"//[^\n]*", "", source).split(";"):
        text = statement.strip()
        if not text:
            continue
        declares = re.match(r"var\s+", text)
        for part in text[declares.end() :].split(",") if declares else [text]:
            name, found, right = re.split(r"(\+?=)", part, maxsplit=1)
            value = evaluate(right, scope)
            if declares:
                scope.data[name.strip()] = value
            else:
                assign(name, value if found == "=" else scope.read(name.strip()) + value, scope)


Part = Callable[[Scope], Any]


class _Parser:
    """Turns an expression into a function of the scope, by precedence."""

    def __init__(self, source: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        at = 0
        text = source.strip()
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is None:
                raise Unsupported(f"{text[at : at + 10]!r}")
            kind = token.lastgroup or ""
            self.tokens.append((kind, token[kind]))
            at = token.end()
        self.at = 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def take(self, *expected: str) -> tuple[str, str]:
        token = self.peek()
        if expected and token[1] not in expected:
            raise ScriptError(f"unexpected {token[1]!r}")
        self.at += 1
        return token

    def end(self) -> None:
        if self.peek()[0] != "end":
            raise ScriptError(f"unexpected {self.peek()[1]!r}")

    def expression(self, level: int = 0) -> Part:
        if level == len(_BINARY):
            return self.unary()
        left = self.expression(level + 1)
        while self.peek()[0] in ("op", "name") and self.peek()[1] in _BINARY[level]:
            operator = self.take()[1]
            left = _binary(operator, left, self.expression(level + 1))
        return left

    def unary(self) -> Part:
        kind, text = self.peek()
        if (kind, text) == ("op", "!"):
            self.take()
            inner = self.unary()
            return lambda scope: not truthy(inner(scope))
        if (kind, text) == ("op", "-"):
            self.take()
            inner = self.unary()
            return lambda scope: -inner(scope)
        if (kind, text) == ("op", "++"):
            self.take()
            return _raises(self.take()[1])
        if (kind, text) == ("name", "typeof"):
            self.take()
            inner = self.unary()
            return lambda scope: _typeof(inner, scope)
        return self.postfix()

    def postfix(self) -> Part:
        value = self.primary()
        while True:
            kind, text = self.peek()
            if (kind, text) == ("op", "."):
                self.take()
                value = _reads(value, self.take()[1])
            elif (kind, text) == ("op", "["):
                self.take()
                index = self.expression()
                self.take("]")
                value = _indexes(value, index)
            elif (kind, text) == ("op", "("):
                value = _calls(value, self.listed("(", ")"))
            else:
                return value

    def listed(self, first: str, last: str) -> list[Part]:
        self.take(first)
        found: list[Part] = []
        while self.peek()[1] != last:
            found.append(self.expression())
            if self.peek()[1] != last:
                self.take(",")
        self.take(last)
        return found

    def primary(self) -> Part:
        kind, text = self.peek()
        if (kind, text) == ("op", "("):
            self.take()
            inner = self.expression()
            self.take(")")
            return inner
        if (kind, text) == ("op", "["):
            items = self.listed("[", "]")
            return lambda scope: [item(scope) for item in items]
        if (kind, text) == ("op", "{"):
            return self.members()
        self.take()
        if kind == "number":
            number = float(text) if "." in text else int(text)
            return lambda scope: number
        if kind == "text":
            return lambda scope: text[1:-1]
        if kind != "name" or text == "return":
            raise ScriptError(f"unexpected {text!r}")
        if text in ("function", "new"):
            raise Unsupported(text)
        known = {"true": True, "false": False, "null": None, "undefined": UNDEFINED}
        if text in known:
            return lambda scope: known[text]
        return _Name(text)

    def members(self) -> Part:
        self.take("{")
        found: dict[str, Part] = {}
        while self.peek()[1] != "}":
            name = self.take()[1].strip("'\"")
            self.take(":")
            found[name] = self.expression()
            if self.peek()[1] != "}":
                self.take(",")
        self.take("}")
        return lambda scope: {name: part(scope) for name, part in found.items()}


class _Name:
    """A name; it is called by itself, and `typeof` of an unknown one is no error."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, scope: Scope) -> Any:
        return scope.read(self.name)


class _Member:
    """A member of a value, which may be called as a method."""

    def __init__(self, value: Part, name: str) -> None:
        self.value = value
        self.name = name

    def __call__(self, scope: Scope) -> Any:
        return _member(self.value(scope), self.name)


def _raises(name: str) -> Part:
    def add(scope: Scope) -> Any:
        assign(name, scope.read(name) + 1, scope)
        return scope.read(name)

    return add


def _reads(value: Part, name: str) -> Part:
    return _Member(value, name)


def _indexes(value: Part, index: Part) -> Part:
    return lambda scope: _member(value(scope), index(scope))


def _calls(called: Part, arguments: list[Part]) -> Part:
    def call(scope: Scope) -> Any:
        given = [argument(scope) for argument in arguments]
        if isinstance(called, _Name) and called.name in scope.functions:
            return scope.functions[called.name](*given)
        if isinstance(called, _Member) and called.name == "concat":
            whole = list(called.value(scope))
            for more in given:
                whole += more if isinstance(more, list) else [more]
            return whole
        raise Unsupported("a call")

    return call


def _member(value: Any, name: Any) -> Any:
    if value is UNDEFINED or value is None:
        raise ScriptError(f"a member {name!r} of {value!r}")
    if isinstance(value, dict):
        return value.get(name, UNDEFINED)
    if isinstance(value, list) and isinstance(name, int):
        return value[name] if 0 <= name < len(value) else UNDEFINED
    if isinstance(value, list | str) and name == "length":
        return len(value)
    if isinstance(value, str):
        raise Unsupported(f"a method {name!r} of a text")
    return UNDEFINED


def _typeof(inner: Part, scope: Scope) -> str:
    try:
        value = inner(scope)
    except ScriptError:
        if isinstance(inner, _Name):
            return "undefined"
        raise
    if value is UNDEFINED:
        return "undefined"
    kinds = {bool: "boolean", int: "number", float: "number", str: "string"}
    return kinds.get(type(value), "object")


def truthy(value: Any) -> bool:
    """Whether ECMAScript takes a value for true; objects and arrays always are."""
    if isinstance(value, dict | list):
        return True
    return value is not UNDEFINED and bool(value)


def _equal(left: Any, right: Any) -> bool:
    if left in (None, UNDEFINED) or right in (None, UNDEFINED):
        return (left is None or left is UNDEFINED) and (right is None or right is UNDEFINED)
    if isinstance(left, str) and isinstance(right, int | float):
        return _number(left) == right
    if isinstance(right, str) and isinstance(left, int | float):
        return _number(right) == left
    return bool(left == right)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _binary(operator: str, left: Part, right: Part) -> Part:
    if operator == "||":
        return lambda scope: one if truthy(one := left(scope)) else right(scope)
    if operator == "&&":
        return lambda scope: right(scope) if truthy(one := left(scope)) else one
    if operator == "instanceof":
        return lambda scope: isinstance(left(scope), list)
    return lambda scope: _apply(operator, left(scope), right(scope))


def _apply(operator: str, left: Any, right: Any) -> Any:
    if operator in ("===", "!=="):
        same = type(left) is type(right) and left == right
        return same is (operator == "===")
    if operator in ("==", "!="):
        return _equal(left, right) is (operator == "==")
    if operator == "in":
        return isinstance(right, dict) and left in right
    if operator == "+" and (isinstance(left, str) or isinstance(right, str)):
        return f"{left}{right}"
    numbers: dict[str, Callable[[Any, Any], Any]] = {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "<": lambda a, b: a < b,
        ">": lambda a, b: a > b,
        "<=": lambda a, b: a <= b,
        ">=": lambda a, b: a >= b,
        "|": lambda a, b: int(a) | int(b),
    }
    if operator not in numbers or left is UNDEFINED or right is UNDEFINED:
        raise Unsupported(operator)
    return numbers[operator](left, right)
