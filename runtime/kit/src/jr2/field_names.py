"""Finds a field of the context that `.set(…)` names and that there is not, before anything runs.

No type checker sees that name: the fields of a model are the arguments of its constructor, and
nothing in Python's types takes some of them by name. So the build reads the author's functions. A
call counts only when it is `.set(…)` on the function's first parameter, which the kernel gives the
context, or on `self` in a method of the context itself. The compiled function is looked at first,
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
from typing import Any, Final, NamedTuple

from .run_data import Context

Position = tuple[int, int]
"""Line, and the column in bytes."""

_ASKS: Final = frozenset({"isinstance", "hasattr", "type"})
"""A function that serves several contexts asks which one it has."""


def unknown(function: Callable[..., Any] | None, context: type[Context]) -> Iterator[str]:
    """Yield each field that a function sets on its context and that there is not, with the line."""
    called: Any = getattr(function, "jr2_called", function)
    if not isinstance(called, types.FunctionType) or context.set is not Context.set:
        return
    code = called.__code__
    fields = context.__pydantic_fields__.keys()
    if code.co_argcount == 0 or "set" not in code.co_names or _fits(code, fields):
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
        if call.on == first and call.place in compiled:
            for name in call.names:
                if name not in fields:
                    file = "/".join(PurePath(code.co_filename).parts[-2:])
                    yield f"{file} line {call.place[0]}: {said(context, name)}"


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
    """A call of `.set(…)` in a source."""

    on: str
    place: Position
    """Of the name that it is called on."""
    names: tuple[str, ...]


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


def _fits(code: types.CodeType, fields: Iterable[str]) -> bool:
    """Whether all names of arguments in a compiled function are fields: there is nothing to find."""
    known = set(fields)
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
    """Return the calls of `.set(…)` on a name in a source; none where it does not parse."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: list[_Call] = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "set"
            and isinstance(node.func.value, ast.Name)
        ):
            name = node.func.value
            keys = tuple(one.arg for one in node.keywords if one.arg is not None)
            found.append(_Call(name.id, (name.lineno, name.col_offset), keys))
    return tuple(found)
