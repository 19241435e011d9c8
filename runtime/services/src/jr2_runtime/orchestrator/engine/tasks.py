"""Tasks in flight: each is asked of its Assembly's process until one result has come back.

A task is at least once: when its process ends first, it is asked again under the same key. Its
result is recorded once, for the store takes one result of a key. Which tasks share a process, and
which of them has failed when it ends, is the matter of `cells`.

No more than `names.MAX_TASKS` run at once, and their inputs fit a number of bytes; who is next is
the matter of `turns`.

Source: design §4.4, ADR-0121.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from jr2 import frames, host_wire, names

from ..host import LinkLost, Processes
from ..store.rows import Task
from .cells import Cells
from .transition import Unfit, to_json
from .turns import Turns, Waiting

_LONGEST_REASON: Final = 10_000

log = logging.getLogger("jr2.engine")

Deliver = Callable[[str, host_wire.TaskDone | host_wire.TaskFailed], None]
"""Takes a run id and the result of one of its tasks."""
Read = Callable[[str, str], Awaitable[Task | None]]
"""Returns the task of a run and a key, when it is not over."""


class Tasks:
    """The tasks that were started and have not come back.

    Args:
        group: owns one coroutine for each that runs.
        processes: where they run.
        deliver: takes each result; called once for each task that was not stopped.
        read: looks up a task that had to wait.
        most: how many run at once.
        most_of_run: how many of them are of one run.
        most_bytes: of the inputs of those that run; a larger one runs alone.
    """

    def __init__(
        self,
        group: asyncio.TaskGroup,
        processes: Processes,
        deliver: Deliver,
        read: Read,
        *,
        most: int = names.MAX_TASKS,
        most_of_run: int = names.MAX_TASKS_OF_RUN,
        most_bytes: int = names.MAX_TASKS_BYTES,
    ) -> None:
        self._group = group
        self._cells = Cells(processes)
        self._deliver = deliver
        self._read = read
        self._most, self._most_of_run, self._most_bytes = most, most_of_run, most_bytes
        self._running: dict[str, dict[str, asyncio.Task[None]]] = {}
        self._turns = Turns()
        self._count = 0
        self._bytes = 0

    def start(self, task: Task) -> None:
        """Have a task run when it is its turn; one that runs or waits under the same key goes on."""
        waiting = Waiting(task.run, task.key, len(task.input))
        if self._is_known(waiting):
            return
        if not self._turns and self._may_run(task.run) and self._has_room(waiting.size):
            self._begin(waiting, task)
        else:
            self._turns.add(waiting)
            self._admit()

    def queue(self, waiting: Waiting) -> None:
        """Have a task run when it is its turn, which is read from the store then."""
        if not self._is_known(waiting):
            self._turns.add(waiting)
            self._admit()

    def stop(self, run: str, key: str) -> None:
        """Stop one task; its result is dropped."""
        if self._turns.remove(run, key):
            return
        running = self._running.get(run, {}).pop(key, None)
        if running is not None:
            running.cancel()
            cell = self._cells.where((run, key))
            if cell is not None:
                self._group.create_task(cell.process.stop_task(run, key))
                self._cells.leave((run, key))

    def stop_run(self, run: str) -> None:
        """Stop every task of a run that has settled."""
        for key in [*self._turns.keys(run), *self._running.get(run, {})]:
            self.stop(run, key)
        self._running.pop(run, None)

    def forget(self, assembly: str) -> None:
        """The Assembly is gone, and its processes with it."""
        self._cells.forget(assembly)

    def __len__(self) -> int:
        return sum(len(running) for running in self._running.values())

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._turns)

    # --- whose turn it is -------------------------------------------------------------------------
    def _is_known(self, waiting: Waiting) -> bool:
        return waiting.key in self._running.get(waiting.run, {}) or (
            (waiting.run, waiting.key) in self._turns
        )

    def _may_run(self, run: str) -> bool:
        return len(self._running.get(run, ())) < self._most_of_run

    def _has_room(self, size: int) -> bool:
        return not self._count or (
            self._count < self._most and self._bytes + size <= self._most_bytes
        )

    def _admit(self) -> None:
        while (first := self._turns.first(self._may_run)) and self._has_room(first.size):
            self._turns.take(first)
            self._begin(first, None)

    def _begin(self, waiting: Waiting, task: Task | None) -> None:
        self._count += 1
        self._bytes += waiting.size
        running = self._group.create_task(self._run(waiting, task))
        self._running.setdefault(waiting.run, {})[waiting.key] = running
        # Not in the coroutine: one that is stopped before its first step never gets there.
        running.add_done_callback(lambda done: self._has_ended(waiting, done))

    def _has_ended(self, waiting: Waiting, done: asyncio.Task[None]) -> None:
        self._count -= 1
        self._bytes -= waiting.size
        if self._running.get(waiting.run, {}).get(waiting.key) is not done:
            self._admit()  # else it was cancelled with the program

    async def _run(self, waiting: Waiting, given: Task | None) -> None:
        """Bring one task to its result; this is the root of its coroutine."""
        result: host_wire.TaskDone | host_wire.TaskFailed | None = None
        try:
            task = given or await self._read(waiting.run, waiting.key)
            if task is not None:
                result = await self._result(task)
        except Exception as error:
            log.exception("a task could not be asked for", extra={"run": waiting.run})
            result = host_wire.TaskFailed(key=waiting.key, reason=f"{type(error).__name__}")
        self._cells.leave((waiting.run, waiting.key))
        running = self._running.get(waiting.run, {})
        running.pop(waiting.key, None)
        if not running:
            self._running.pop(waiting.run, None)
        if result is not None:
            self._deliver(waiting.run, result)

    async def _result(self, task: Task) -> host_wire.TaskDone | host_wire.TaskFailed:
        request = {
            "op": "task",
            "run_id": task.run,
            "workflow": task.workflow,
            "key": task.key,
            "machine": list(task.machine),
            "slot": task.slot,
            "input": json.loads(task.input),
        }
        while True:
            id_ = (task.run, task.key)
            cell = self._cells.of(id_, task.assembly)
            ends = cell.ends
            try:
                reply, _ = await cell.process.task(request)
            except LinkLost as lost:
                if lost.by_us:
                    continue
                reason = f"the task was ended again and again: {lost.reason}"
                if await cell.process.worker_went():
                    failed = self._cells.worker_went(id_)
                else:
                    failed = self._cells.ended(cell, ends)
                    if lost.blocked is not None:
                        reason = _blocked(task, lost.blocked)
                if not failed:
                    continue
                return host_wire.TaskFailed(key=task.key, reason=reason)
            except frames.FrameError as bad:
                return host_wire.TaskFailed(key=task.key, reason=str(bad))
            return _result(task.key, reply)


def _blocked(task: Task, seconds: float) -> str:
    return (
        f'the task "{task.slot}" blocked its process for {seconds:g} s — '
        "a task must not block; use asyncio.to_thread"
    )


def _result(key: str, reply: object) -> host_wire.TaskDone | host_wire.TaskFailed:
    """Return the event of a reply, under the key that the task was asked with."""
    match reply:
        case host_wire.TaskReturned():
            try:
                size = len(to_json(reply.output))
            except Unfit as unfit:
                return host_wire.TaskFailed(key=key, reason=f"its result was not kept: {unfit}")
            if size > names.MAX_EVENT:
                reason = f"its result has {size} bytes; the limit is {names.MAX_EVENT}"
                return host_wire.TaskFailed(key=key, reason=reason)
            return host_wire.TaskDone(key=key, output=reply.output)
        case host_wire.TaskRaised():
            return host_wire.TaskFailed(key=key, reason=reply.reason[:_LONGEST_REASON])
        case host_wire.Broken() | host_wire.Refused():
            return host_wire.TaskFailed(key=key, reason=reply.error[:_LONGEST_REASON])
        case _:
            return host_wire.TaskFailed(key=key, reason="its process answered something else")
