"""Whether a text of a page is a message of the code, word for word where both have words.

A page writes `<namespace>` for a value and `…` for what it leaves out; the code has a hole there.
Such a place takes any words of the other side. Every other word must be the same, and they must be
most of the words of the message, so that a text of holes fits nothing by chance; where a page
leaves out a part with `…`, most of the words that it does have.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from tests.contract.messages.of_code import HOLE

_VALUE: Final = re.compile(r"<[^<>\n]{1,60}>|…")
_ELLIPSIS: Final = "…"


@cache
def words(text: str) -> tuple[str, ...]:
    """Split a text; a word with a value in it is a hole, since a value may hold spaces."""
    return tuple(
        HOLE if HOLE in word else word for word in _VALUE.sub(HOLE, text).split() if word != "—"
    )


@cache
def _own_words(text: str) -> frozenset[str]:
    return frozenset(words(text)) - {HOLE}


def fits(quoted: str, form: str) -> bool:
    """Say whether a text of a page and a template of the code can be the same message."""
    own, said = _count(quoted), _count(form)
    least = max(1, min(own, said) // 2 if _ELLIPSIS in quoted else said // 2)
    if own < least or len(_own_words(quoted) & _own_words(form)) * 2 < least:
        return False
    return _most(words(quoted), words(form)) > least


@cache
def _count(text: str) -> int:
    return sum(word != HOLE for word in words(text))


def _most(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return how many words are the same in the best alignment; -1 when there is none.

    A hole of either side takes any number of words of the other side.
    """
    width = len(other) + 1
    # `before[j]`: the best for the words of `one` so far and the first j words of `other`.
    before = [0] + [-1] * (width - 1)
    for j in range(1, width):
        if other[j - 1] != HOLE:
            break
        before[j] = 0
    for word in one:
        now = [before[0] if word == HOLE else -1] + [-1] * (width - 1)
        for j in range(1, width):
            against = other[j - 1]
            best = -1
            if word == HOLE or against == HOLE:
                best = max(before[j], now[j - 1]) if word == against else -1
                if word == HOLE:
                    best = max(best, before[j], now[j - 1])
                if against == HOLE:
                    best = max(best, now[j - 1], before[j])
            elif word == against and before[j - 1] >= 0:
                best = before[j - 1] + 1
            now[j] = best
        before = now
    return before[-1]
