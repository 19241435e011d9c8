"""What a signal does: the command stops what it does, cleans up, and is gone within two seconds.

The first SIGINT raises `KeyboardInterrupt` where the command stands, so that each `finally` runs.
When they take too long, or on a second SIGINT, the command kills what it started and leaves: what
it started elsewhere holds a pipe to it and ends with it. Once all is cleaned up a further SIGINT is
ignored to the end of the process, for it could only take away the line that says how things stand.

Python handles a signal in the main thread, between two of its instructions. A signal that comes
just before that thread waits in the kernel, or that the kernel gives to another thread, is noted
and then lies there until the wait ends, which may be never. So each signal is also written to a
pipe, and a thread that reads it wakes the main thread up.

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
_NUDGE = signal.SIGURG
"""Wakes a thread that waits in the kernel; nobody uses it for anything else."""
_NUDGES = 0.05
"""Seconds between two nudges to a main thread that has not heard of its signal."""


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
    """Handle SIGINT and SIGTERM within the block; outside the main thread this does nothing.

    After a signal nothing is as it was before: the process is on its way out.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ends_with(lambda: "interrupted")
    handler = _Handler()
    ours: dict[signal.Signals, Callable[[int, FrameType | None], None]] = {
        signal.SIGINT: handler,
        signal.SIGTERM: handler,
        _NUDGE: _hear,
    }
    before = {number: signal.signal(number, each) for number, each in ours.items()}
    try:
        with _waking_main(handler):
            yield
    finally:
        if handler.is_leaving:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        else:
            for number, earlier in before.items():
                signal.signal(number, earlier)


def leave_at_first() -> None:
    """End the process at the first SIGINT from here on, without a trace, and ignore the others.

    For a program of plain Pulumi: the engine interrupts the program and its host, the host
    interrupts the program too, and the second signal would be met by an interpreter that ends.
    """

    def leave(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise SystemExit(EXIT_INTERRUPTED)

    signal.signal(signal.SIGINT, leave)


def _hear(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: who is woken up handles what waits for it."""


@contextlib.contextmanager
def _waking_main(handler: _Handler) -> Iterator[None]:
    """Wake the main thread, which calls this, for each signal that it does not hear of."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    main = threading.get_ident()

    def wake() -> None:
        while numbers := os.read(reader, 64):
            if handler.signals.isdisjoint(numbers):
                continue
            while not handler.heard.wait(_NUDGES):
                signal.pthread_kill(main, _NUDGE)

    waker = threading.Thread(target=wake, name="wakes the main thread", daemon=True)
    waker.start()
    earlier = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(earlier)
        # Whoever leaves hears of its signals from here on; the thread ends with the pipe.
        handler.heard.set()
        os.close(writer)
        waker.join()
        os.close(reader)


class _Handler:
    signals = frozenset((signal.SIGINT, signal.SIGTERM))

    def __init__(self) -> None:
        self.heard = threading.Event()
        self._watchdog: threading.Timer | None = None

    @property
    def is_leaving(self) -> bool:
        """Whether a signal has come, and the process ends within the limit."""
        return self._watchdog is not None

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        self.heard.set()
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
