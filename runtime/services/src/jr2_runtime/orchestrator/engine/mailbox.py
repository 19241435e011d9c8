"""The queue of one run: its events are taken one at a time, in the order in which they came."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field

from jr2 import host_wire

from ..host import Ask
from ..store import Once, Run

Event = host_wire.GateEvent | host_wire.TaskDone | host_wire.TaskFailed | host_wire.TimerFired


@dataclass(slots=True, kw_only=True, eq=False)
class Item:
    """One event that waits for its step.

    It is held as the text that the Assembly process gets: the objects of a payload take many times
    its bytes, and whoever posted what has no text is told so before it waits.
    """

    text: str
    """The event as JSON text."""
    gate: str | None = None
    """The Gate that it is for."""
    task: str | None = None
    """The key of the task whose result this is."""
    timer: str | None = None
    """The key of the timer that fired."""
    answer: asyncio.Future[None] | None = None
    """Of who posted it; `None` for what the engine itself delivers."""
    once: Once | None = None
    """The key under which it was posted, when there is one."""
    done: Callable[[], None] | None = None
    """Called once, when the event was consumed or dropped."""
    since: float = field(default_factory=time.monotonic)
    """When it was queued, in seconds."""
    context: Context = field(default_factory=copy_context)
    """Of who posted it: what is logged and started for the event belongs to its trace."""
    asked: bool = False
    """The step was asked for: the event cannot be withdrawn any more."""

    @classmethod
    def of(
        cls,
        event: Event,
        *,
        answer: asyncio.Future[None] | None = None,
        once: Once | None = None,
        done: Callable[[], None] | None = None,
    ) -> Item:
        """Return what waits for an event; the arguments are the fields."""
        gate = task = timer = None
        if isinstance(event, host_wire.GateEvent):
            gate = event.gate
        elif isinstance(event, host_wire.TimerFired):
            timer = event.key
        else:
            task = event.key
        text = event.__pydantic_serializer__.to_json(event).decode()
        return cls(
            text=text, gate=gate, task=task, timer=timer, answer=answer, once=once, done=done
        )

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


FIRST_PAUSE = 0.1
"""Seconds after which the event of a task or a timer is tried again."""
LONGEST_PAUSE = 30.0


@dataclass(slots=True, kw_only=True, eq=False)
class Mailbox:
    """The events of one run that has some; the first of them is under way."""

    id: str
    run: Run | None
    """The run as it is in the store, as far as that is known."""
    assembly: str | None
    """That the run holds, as far as that is known."""
    is_remembered: bool
    """It was known before the first event came, so the store may know better."""
    is_kept: bool
    """The Assembly process has likely kept its snapshot."""
    items: deque[Item] = field(default_factory=deque)
    ask: Ask | None = None
    """The step that is under way."""
    is_gone: bool = False
    """The run was settled by something else than a step: what is under way is of no use."""
    pause: float = FIRST_PAUSE
    bytes: int = 0
    """What its run takes, while it waits in a line."""

    def head(self) -> Item | None:
        """Return the first event that somebody waits for."""
        items = self.items
        while items:
            first = items[0]
            if first.answer is None or not first.answer.done():
                return first
            items.popleft()
        return None

    def drop(self, item: Item) -> None:
        """The event was taken or refused."""
        self.pause = FIRST_PAUSE
        if self.items and self.items[0] is item:
            self.items.popleft()

    def longer_pause(self) -> float:
        """Return the seconds to wait before the first event is tried again."""
        now, self.pause = self.pause, min(self.pause * 2, LONGEST_PAUSE)
        return now
