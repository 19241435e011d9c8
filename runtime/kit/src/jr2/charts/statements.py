"""Reads a Chart file: its statements, without what only changes how it looks.

Two Charts are the same when their statements are: comments, blank lines, indentation, line ends,
`direction` and styles may differ, so a person may dress a Chart up and it still matches.

Source: design §4.6, ADR-0136.
"""

from __future__ import annotations

import re
from typing import Final

HEADER: Final = "stateDiagram-v2"
_ID: Final = r"[A-Za-z0-9_]+"
_STATEMENTS: Final = (
    re.compile(rf'state "[^"]*" as {_ID}(?: \{{)?'),
    re.compile(rf"{_ID} : \S.*"),
    re.compile(rf"(?:{_ID}|\[\*\]) --> (?:{_ID}|\[\*\])(?: : \S.*)?"),
    re.compile(r"--"),
    re.compile(r"\}"),
)
_LOOKS: Final = re.compile(
    r"%%.*|direction\s+(?:TB|BT|LR|RL)|(?:classDef|class|style)\s.*|acc(?:Title|Descr)\s*:.*"
)
_LONGEST_SHOWN: Final = 120


class Unreadable(ValueError):
    """A text is no Chart; the message names the line."""


def read(text: str) -> list[str]:
    """Return the statements of a Chart.

    Raises:
        Unreadable: a line is none of those that `jr2 chart` writes, or the braces do not match.
    """
    found: list[str] = []
    open_lines: list[int] = []
    headed = False
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        line = raw.strip()
        if not line or _LOOKS.fullmatch(line):
            continue
        if not headed:
            if line != HEADER:
                raise Unreadable(f'line {number} is not "{HEADER}", with which a Chart starts')
            headed = True
            continue
        if not any(form.fullmatch(line) for form in _STATEMENTS):
            raise Unreadable(f'line {number}: "{line[:_LONGEST_SHOWN]}"')
        if line.endswith("{"):
            open_lines.append(number)
        elif line == "}":
            if not open_lines:
                raise Unreadable(f"line {number} closes a state that no line opens")
            open_lines.pop()
        found.append(line)
    if not headed:
        raise Unreadable("it is empty")
    if open_lines:
        raise Unreadable(f"nothing closes the state that line {open_lines[-1]} opens")
    return found


def difference(held: str, drawn: str) -> str | None:
    """Return the first thing in which a Chart differs from its Machine, or `None`.

    Args:
        held: the Chart file.
        drawn: what `jr2 chart` would write.

    Raises:
        Unreadable: `held` is no Chart.
    """
    mine, theirs = read(held), read(drawn)
    if mine == theirs:
        return None
    for line in theirs:
        if theirs.count(line) > mine.count(line):
            return f'it lacks "{line}"'
    for line in mine:
        if mine.count(line) > theirs.count(line):
            return f'it holds "{line}", which the Machine has not'
    return "its lines stand in another order"
