"""A secret that is sent as a header: what one can carry, judged before an HTTP client sees it.

A client that is given another text quotes it in its exception, whole, and so the secret would reach
a message.

Source: field case 6, ADR-0059.
"""

from __future__ import annotations

from typing import Final

from jr2.errors import StepFailed

PROBLEM: Final = (
    "holds a character a header cannot carry (outside printable ASCII) or leading or trailing "
    "space — a pasted newline, most likely; the value itself is not shown"
)


def can_carry(text: str) -> bool:
    """Say whether a header can carry a text: printable ASCII with no space at its ends."""
    return text.isascii() and text.isprintable() and text == text.strip() and bool(text)


def bearer(token: str, what: str) -> str:
    """Return the header `Authorization` of a token.

    Args:
        token: the token.
        what: where it came from, for the error.

    Raises:
        StepFailed: a header cannot carry it; the token is not shown.
    """
    if not can_carry(token):
        raise uncarried(what)
    return f"Bearer {token}"


def uncarried(what: str, fix: str = "") -> StepFailed:
    """Return the error of a text that no header can carry.

    Args:
        what: where it came from.
        fix: what to do, with the sign that joins it.
    """
    return StepFailed(f"{what} {PROBLEM}{fix}")
