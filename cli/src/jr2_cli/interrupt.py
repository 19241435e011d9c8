"""What a signal does: the command stops what it does, cleans up, and is gone within two seconds.

The first SIGINT raises `KeyboardInterrupt` where the command stands, so that each `finally` runs.
When they take too long, or on a second SIGINT, the command kills what it started and leaves: what
it started elsewhere holds a pipe to it and ends with it.

Source: field case 4f, design §5.7.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 128 + signal.SIGTERM
LIMIT = 1.7
"""Seconds from the signal to the end, whatever hangs."""


_last_line: Callable[[], str] | None = None


def ends_with(line: Callable[[], str]) -> None:
    """Let a command that is interrupted say more than `interrupted`.

    Args:
        line: builds its last line, when it is interrupted.
    """
    global _last_line
    _last_line = line


def take_last_line() -> str | None:
    """Return the last line of a command that is interrupted, and `None` when it was taken."""
    global _last_line
    line, _last_line = _last_line, None
    return None if line is None else line()


@contextlib.contextmanager
def handled() -> Iterator[None]:
    """Handle SIGINT and SIGTERM within the block; outside the main thread this does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ends_with(lambda: "interrupted")
    handler = _Handler()
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


class _Handler:
    def __init__(self) -> None:
        self._watchdog: threading.Timer | None = None

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        status = EXIT_INTERRUPTED if number == signal.SIGINT else EXIT_TERMINATED
        if self._watchdog is not None:
            _leave(status)
        # It stays armed to the end of the process: a thread that the interpreter waits for may
        # hang after everything here has returned.
        self._watchdog = threading.Timer(LIMIT, _leave, args=(status,))
        self._watchdog.daemon = True
        self._watchdog.start()
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(status)


def _leave(status: int) -> None:
    from . import processes

    processes.kill_all()
    line = take_last_line() if status == EXIT_INTERRUPTED else None
    if line is not None:
        with contextlib.suppress(OSError):
            os.write(2, f"{line}\n".encode())
    os._exit(status)
