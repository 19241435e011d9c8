"""The queue of one run: its events are taken one at a time, in the order in which they came."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from jr2 import host_wire

from ..store import Once

Event = host_wire.GateEvent | host_wire.TaskDone | host_wire.TaskFailed | host_wire.TimerFired


@dataclass(slots=True, kw_only=True, eq=False)
class Item:
    """One event that waits for its step."""

    event: Event
    answer: asyncio.Future[None] | None = None
    """Of who posted it; `None` for what the engine itself delivers."""
    once: Once | None = None
    """The key under which it was posted, when there is one."""
    done: Callable[[], None] | None = None
    """Called once, when the event was consumed or dropped."""
    since: float = field(default_factory=time.monotonic)
    """When it was queued, in seconds."""
    asked: bool = False
    """The step was asked for: the event cannot be withdrawn any more."""

    @property
    def task(self) -> str | None:
        """The key of the task whose result this is."""
        if isinstance(self.event, host_wire.TaskDone | host_wire.TaskFailed):
            return self.event.key
        return None

    @property
    def timer(self) -> str | None:
        """The key of the timer that fired."""
        return self.event.key if isinstance(self.event, host_wire.TimerFired) else None

    def succeed(self) -> None:
        """Say that the event was consumed, and that this is on the disk."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(None)
        self._finish()

    def fail(self, error: Exception) -> None:
        """Say that the event was not taken."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # whoever posted may have gone
        self._finish()

    def _finish(self) -> None:
        done, self.done = self.done, None
        if done is not None:
            done()


@dataclass(slots=True, kw_only=True, eq=False)
class Mailbox:
    """The events of one run, and the coroutine that takes them."""

    items: deque[Item] = field(default_factory=deque)
    draining: asyncio.Task[None] | None = None
