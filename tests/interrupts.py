"""An interrupt of the main thread of the tests, as a person gives one with Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Final

_AGAIN: Final = 0.05
"""Seconds until the signal is sent again."""


class Interrupt:
    """Raises `KeyboardInterrupt` in the main thread, once, wherever that stands."""

    def __init__(self) -> None:
        self._heard = threading.Event()

    def send(self) -> None:
        """Interrupt the main thread; returns when it has heard of it.

        A signal that comes just before the thread waits in the kernel wakes nobody, so it is sent
        until it was heard.
        """
        while not self._heard.is_set():
            os.kill(os.getpid(), signal.SIGUSR1)
            self._heard.wait(_AGAIN)

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        # The others only wake who waits: what is cleaned up is not interrupted again.
        if not self._heard.is_set():
            self._heard.set()
            raise KeyboardInterrupt


@contextlib.contextmanager
def interrupt() -> Iterator[Interrupt]:
    """Give an interrupt that another thread may send."""
    made = Interrupt()
    before = signal.signal(signal.SIGUSR1, made._hear)
    try:
        yield made
    finally:
        signal.signal(signal.SIGUSR1, before)
