"""How long a test waits for what must come, and the wait itself.

A limit only ends a test that would hang: it is many times what the slowest machine needs, and no
test says by it how quick something is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

LIMIT: Final = 240.0
"""Seconds; less than the limit of a whole test (`timeout` in `pyproject.toml`)."""
_PAUSES: Final = (0.02, 0.25)
"""Seconds between two looks, at first and in the end."""

_Found = TypeVar("_Found")


def wait_for(what: str, answer: Callable[[], _Found], seconds: float = LIMIT) -> _Found:
    """Ask until the answer is true, and return it.

    Args:
        what: what is waited for; the failure says it.
        answer: asked again and again.
        seconds: when the wait has failed.
    """
    began, (first, last) = time.monotonic(), _PAUSES
    while not (found := answer()):
        waited = time.monotonic() - began
        assert waited < seconds, f"waited {seconds:g} s in vain: {what}"
        # Whoever waits for long takes nothing from what is waited for.
        time.sleep(min(max(first, waited / 20), last))
    return found
