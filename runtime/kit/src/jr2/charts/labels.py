"""Names and texts of a Machine as Mermaid reads them: no name can become syntax or markup.

Mermaid takes `#<code>;` for a character, reads labels as Markdown, and ends a label at a colon or
a semicolon. So a text keeps letters, digits and a few marks, and everything else is written as its
code. Ids are made here too: a state's path with `__` between its keys, never a word of Mermaid's.

Source: design §4.6, ADR-0136.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

_KEPT: Final = frozenset(" .,-/()'·")
_WORDS: Final = frozenset(
    {"class", "classdef", "click", "default", "direction", "end", "hide", "href", "note", "scale"}
    | {"state", "statediagram", "style", "accdescr", "acctitle", "constructor", "tostring"}
    | {"valueof", "root"}
)
_UNITS: Final = (
    ("d", timedelta(days=1)),
    ("h", timedelta(hours=1)),
    ("m", timedelta(minutes=1)),
    ("s", timedelta(seconds=1)),
    ("ms", timedelta(milliseconds=1)),
    ("us", timedelta(microseconds=1)),
)


def text(words: str) -> str:
    """Return a text as a label that shows it, whatever it holds."""
    escaped = "".join(
        character if _is_plain(words, at) else _code(character)
        for at, character in enumerate(words)
    )
    # Mermaid looks for this pair of words anywhere in a line.
    return re.sub(r"(direction) (?=\s*(?:TB|BT|RL|LR))", r"\1#32;", escaped, flags=re.I)


def duration(delay: timedelta) -> str:
    """Return a duration in its largest units, such as `7d` or `1h 30m`."""
    parts: list[str] = []
    for name, unit in _UNITS:
        count, delay = divmod(delay, unit)
        if count:
            parts.append(f"{count}{name}")
    return " ".join(parts) or "0s"


class Ids:
    """Gives each state of a drawing its id, in the order in which they are asked for."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def give(self, keys: Sequence[str]) -> str:
        """Return a new id for a path of keys."""
        plain = re.sub(r"[^A-Za-z0-9_]", "_", "__".join(keys))
        if plain.lower() in _WORDS or plain.startswith("_"):
            plain = f"s_{plain}"
        free, count = plain, 2
        while free in self._given:
            free, count = f"{plain}_{count}", count + 1
        self._given.add(free)
        return free


def _is_plain(words: str, at: int) -> bool:
    character = words[at]
    if character.isalnum():
        return True
    if character == "_":
        # Within a word it is no emphasis.
        return 0 < at < len(words) - 1 and words[at - 1].isalnum() and words[at + 1].isalnum()
    if character in "-.)" and not words[:at].strip("0123456789 "):
        # At the start it would make a list.
        return False
    return character in _KEPT


def _code(character: str) -> str:
    return f"#{ord(character) if character.isprintable() else 0xFFFD};"
