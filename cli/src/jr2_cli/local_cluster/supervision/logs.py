"""Logs that stay short while their processes write them.

A process keeps its log open, so the log is copied and emptied, not renamed: every log is opened to
append, and the next line of the process starts the empty file. A line that is written between the
end of the copy and the emptying is lost.

Source: design §7.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


def rotate_all(folder: Path, limit: int) -> None:
    """Rotate each `*.log` of a folder that is too long."""
    for log in sorted(folder.glob("*.log")):
        # One that vanishes or cannot be read must not keep the others from being short.
        with contextlib.suppress(OSError):
            rotate(log, limit)


def rotate(log: Path, limit: int) -> bool:
    """Empty a log that is too long; what it held replaces `<name>.log.1`.

    Args:
        log: the log; none is no error.
        limit: bytes that it may hold.

    Returns:
        Whether it was emptied.

    Raises:
        OSError: it cannot be emptied.
    """
    try:
        if log.stat().st_size <= limit:
            return False
    except FileNotFoundError:
        return False
    part = log.with_name(f".{log.name}.part")
    with log.open("r+b") as source:
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as to:
                shutil.copyfileobj(source, to)
            os.replace(part, log.with_name(f"{log.name}.1"))
        except OSError:
            # On a full disk the log itself is what must become short.
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        os.ftruncate(source.fileno(), 0)
    return True
