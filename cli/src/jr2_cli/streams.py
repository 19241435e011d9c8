"""The three streams of the command, also when its caller closed one of them.

A descriptor that is closed is the next one that any file or socket takes, and then the words of the
command would go there. So it leads to `/dev/null` before anything else is opened.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO, cast


def reopen_closed() -> None:
    """Open `/dev/null` on each of the descriptors 0 to 2 that is closed, and its stream."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            _open_null(number)
    # The interpreter leaves a stream out when its descriptor is closed at its start.
    if sys.stdin is None:
        sys.stdin = _stream(0, "r")
    if sys.stdout is None:
        sys.stdout = _stream(1, "w")
    if sys.stderr is None:
        sys.stderr = _stream(2, "w")


def _open_null(number: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    if null != number:
        os.dup2(null, number)
        os.close(null)
    # What this command starts gets the same three streams.
    os.set_inheritable(number, True)


def _stream(number: int, mode: str) -> TextIO:
    return cast(
        "TextIO",
        open(number, mode, encoding="utf-8", errors="backslashreplace", closefd=False),
    )
