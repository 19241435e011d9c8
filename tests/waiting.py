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
_PAUSE: Final = 0.02

_Found = TypeVar("_Found")


def wait_for(what: str, answer: Callable[[], _Found], seconds: float = LIMIT) -> _Found:
    """Ask until the answer is true, and return it.

    Args:
        what: what is waited for; the failure says it.
        answer: asked again and again.
        seconds: when the wait has failed.
    """
    until = time.monotonic() + seconds
    while not (found := answer()):
        assert time.monotonic() < until, f"waited {seconds:g} s in vain: {what}"
        time.sleep(_PAUSE)
    return found
