"""What a signal does: the command stops what it does, cleans up, and is gone within two seconds.

The first SIGINT raises `KeyboardInterrupt` where the command stands, so that each `finally` runs.
When they take too long, or on a second SIGINT, the command kills what it started and leaves: what
it started elsewhere holds a pipe to it and ends with it.

Source: field case 4f, design §5.7.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

from . import processes

EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 128 + signal.SIGTERM
_LIMIT = 1.7
"""Seconds from the signal to the end, whatever hangs."""

_watchdog: threading.Timer | None = None


def install() -> None:
    """Handle SIGINT and SIGTERM from now on; only the main thread may call this."""
    signal.signal(signal.SIGINT, _on_signal)
    signal.signal(signal.SIGTERM, _on_signal)


def _on_signal(number: int, _frame: FrameType | None) -> None:
    global _watchdog
    status = EXIT_INTERRUPTED if number == signal.SIGINT else EXIT_TERMINATED
    if _watchdog is not None:
        _leave(status)
    _watchdog = threading.Timer(_LIMIT, _leave, args=(status,))
    _watchdog.daemon = True
    _watchdog.start()
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(status)


def _leave(status: int) -> None:
    processes.kill_all()
    os._exit(status)
