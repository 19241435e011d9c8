"""What is wrong with a folder, as the text that a person reads.

A fault of user code is said by its class, its words and the user's own line; nothing that the
config read from the environment is ever a part of it.

Source: spec/authoring.md §3.1, design §3.1 and §5.1.
"""

from __future__ import annotations

import linecache
import os
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, get_args

from pydantic import BaseModel, ConfigDict

from .. import masking, names
from .modules import own_relative

Rule = Literal["loads", "door", "open", "size", "place", "effect", "push", "image"]
RULES: Final[tuple[Rule, ...]] = get_args(Rule)
"""The kinds of problems, in the order in which `jr2 check` says them."""


class Shape(BaseModel):
    """What crosses the process of the walk: closed and frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Problem(Shape):
    """One thing that is wrong with the folder.

    Args:
        prefix: what the command prints before the message.
        message: the whole text, over as many lines as it takes.
        rule: what it breaks; all problems of the first rule in the order of `RULES` are printed.
    """

    prefix: Literal["refusing: ", "error: "]
    message: str
    rule: Rule = "loads"


def error(message: str) -> Problem:
    """Return what failed as a problem."""
    return Problem(prefix="error: ", message=message)


def silent(problem: Problem, values: Mapping[str, str]) -> Problem:
    """Return a problem with the names of values in the place of the values."""
    message = masking.without_values(problem.message, values)
    return problem.model_copy(update={"message": message})


def what(value: object) -> str:
    """Say what a value is, never what it holds."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, types.ModuleType):
        return "a module"
    if callable(value):
        return "a function" if isinstance(value, types.FunctionType) else "a callable"
    kind = type(value)
    if kind.__module__.split(".")[0] == "jr2":
        return f"a {kind.__name__}" + (" that is not built" if kind.__name__ == "Machine" else "")
    return f"an object of type {kind.__name__}"


def fault(error: BaseException, folder: Path) -> str:
    """Say an exception of user code: its class, its words, and the user's own line."""
    words = _words(error)
    if isinstance(error, SyntaxError):
        words = error.msg
    said = type(error).__name__ + (f": {words}" if words else "")
    where = _own_line(error, folder)
    return f"{said} ({where})" if where else said


def _words(error: BaseException) -> str:
    try:
        return str(error).strip()
    except Exception:
        # The exception is user code too, and what it is stays worth saying.
        return ""


def config_fault(error: BaseException, folder: Path, values: Mapping[str, str]) -> str:
    """Say an exception of a config that saw values: its class, and the user's own line.

    Its words may hold a value in any form, so they are kept only where they cannot.
    """
    place = _own_place(error, folder)
    said = type(error).__name__
    if place is None:
        return said
    relative = own_relative(place[0], folder)
    text = "".join(linecache.getlines(place[0]))
    source = masking.harmless_source(text, place[1], values) if relative is not None else ""
    words: str | None = None
    if isinstance(error, SyntaxError):
        # Of a file, and not of a text that the config made and evaluated.
        words = error.msg if relative is not None else None
    else:
        words = masking.harmless_words(error, _words(error), values, source)
    if relative is None:
        return said
    where = f"line {place[1]}"
    if relative != names.CONFIG_FILE:
        where = f"{relative} {where}"
    return said + (f": {words}" if words else "") + f" ({where}{f': {source}' if source else ''})"


def _own_line(error: BaseException, folder: Path) -> str | None:
    """Return file, line and source of the deepest line of the folder that the error came through.

    The source of the config is left out: a secret may be written there.
    """
    place = _own_place(error, folder)
    if place is None:
        return None
    relative = own_relative(place[0], folder)
    if relative is None:
        return f"{place[0]} line {place[1]}"
    if relative == names.CONFIG_FILE:
        return f"line {place[1]}"
    source = linecache.getline(*place).strip()
    return f"{relative} line {place[1]}" + (f": {source}" if source else "")


def _own_place(error: BaseException, folder: Path) -> tuple[str, int] | None:
    """Return the file and the line that a syntax error names, else the deepest own line."""
    place: tuple[str, int] | None = None
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        made = own_relative(error.filename, folder) is None and not os.path.isabs(error.filename)
        if not made:
            return (error.filename, error.lineno)
    for filename, line in _frames(error.__traceback__):
        if own_relative(filename, folder) is not None:
            place = (filename, line)
    return place


def _frames(trace: types.TracebackType | None) -> Iterator[tuple[str, int]]:
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
