"""Whether a text of a page is a message of the code, word for word where both have words.

A page writes `<namespace>` for a value and `…` for what it leaves out; the code has a hole there.
Such a place takes any words of the other side. Every other word and mark must be the same, and they
must be most of the message, so that a text of holes fits nothing by chance; where a page
leaves out a part with `…`, most of the words that it does have.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from tests.contract.messages.of_code import HOLE

_TOKEN: Final = re.compile(rf"{HOLE}|\d+|[^\W\d]+|[^\w\s]")
_VALUE: Final = re.compile(r"[\w./-]*<[^<>\n]{1,60}>[\w./-]*|…")
"""A value of a page, with the path or the word that it is a part of."""
_ELLIPSIS: Final = "…"
_PART: Final = 8
"""A message that is put together is known by a part of so many words and marks."""


@cache
def tokens(text: str) -> tuple[str, ...]:
    """Split a text into words, marks and holes; a value may be a part of a longer word."""
    return tuple(_TOKEN.findall(_VALUE.sub(HOLE, text)))


@cache
def _own_words(text: str) -> frozenset[str]:
    return frozenset(token for token in tokens(text) if len(token) > 1)


def fits(quoted: str, form: str) -> bool:
    """Say whether a text of a page and a template of the code can be the same message."""
    own, said = _count(quoted), _count(form)
    least = min(own, said) // 2 if _ELLIPSIS in quoted else max(said // 2, own // 3)
    shared = len(_own_words(quoted) & _own_words(form))
    if (
        min(own, said) <= least
        or shared < min(map(len, (_own_words(quoted), _own_words(form)))) // 2
    ):
        return False
    return _has_most(quoted, form, least + 1)


def holds(quoted: str, part: str) -> bool:
    """Say whether a text of a page has a whole text of the code in it, and that is no small one."""
    least = _count(part)
    return least >= _PART and _has_most(quoted, f"{HOLE} {part} {HOLE}", least)


def says(form: str, text: str) -> bool:
    """Say whether a template of the code makes a text; a constant may be a hole in it."""
    return _has_most(text, form, -(-_count(text) * 4 // 5))


def shows(form: str, text: str) -> bool:
    """Say whether a template, such as a string of a test, has every word of a text, in order."""
    return _own_words(text) <= _own_words(form) and (
        _most(tokens(text), tokens(form)) == _count(text)
    )


@cache
def _count(text: str) -> int:
    return sum(token != HOLE for token in tokens(text))


@cache
def _all_tokens(text: str) -> frozenset[str]:
    return frozenset(tokens(text))


def _has_most(one: str, other: str, least: int) -> bool:
    """Say whether the best alignment of two texts has at least so many tokens the same."""
    # A token that the other text does not have is the same as none of it: most pairs end here.
    there = _all_tokens(other)
    if sum(token in there for token in tokens(one) if token != HOLE) < least:
        return False
    return _most(tokens(one), tokens(other)) >= least


def _most(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """Return how many tokens are the same in the best alignment; -1 when there is none.

    A hole of either side takes any number of tokens of the other side.
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
            if HOLE in (word, against):
                # The hole takes one more of the other side, or ends here.
                now[j] = max(before[j], now[j - 1])
            elif word == against and before[j - 1] >= 0:
                now[j] = before[j - 1] + 1
        before = now
    return before[-1]
