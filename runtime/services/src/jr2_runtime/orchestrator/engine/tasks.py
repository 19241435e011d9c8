"""Tasks in flight: each is asked of its Assembly's process until one result has come back.

A task is at least once: when its process ends first, it is asked again under the same key. Its
result is recorded once, for the store takes one result of a key. Which tasks share a process, and
which of them has failed when it ends, is the matter of `cells`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Final

from jr2 import frames, host_wire, names

from ..host import LinkLost, Processes
from ..store.rows import Task
from .cells import Cells
from .transition import Unfit, to_json

_LONGEST_REASON: Final = 10_000

log = logging.getLogger("jr2.engine")

Deliver = Callable[[Task, host_wire.TaskDone | host_wire.TaskFailed], None]


class Tasks:
    """The tasks that were started and have not come back.

    Args:
        group: owns one coroutine for each.
        processes: where they run.
        deliver: takes each result; called once for each task that was not stopped.
    """

    def __init__(self, group: asyncio.TaskGroup, processes: Processes, deliver: Deliver) -> None:
        self._group = group
        self._cells = Cells(processes)
        self._deliver = deliver
        self._running: dict[str, dict[str, asyncio.Task[None]]] = {}

    def start(self, task: Task) -> None:
        """Have a task run; one that is running under the same key goes on."""
        running = self._running.setdefault(task.run, {})
        if task.key not in running:
            running[task.key] = self._group.create_task(self._run(task))

    def stop(self, run: str, key: str) -> None:
        """Stop one task; its result is dropped."""
        running = self._running.get(run, {}).pop(key, None)
        if running is not None:
            running.cancel()
            cell = self._cells.where((run, key))
            if cell is not None:
                self._group.create_task(cell.process.stop_task(run, key))
                self._cells.leave((run, key))

    def stop_run(self, run: str) -> None:
        """Stop every task of a run that has settled."""
        for key in list(self._running.get(run, {})):
            self.stop(run, key)
        self._running.pop(run, None)

    def forget(self, assembly: str) -> None:
        """The Assembly is gone, and its processes with it."""
        self._cells.forget(assembly)

    def __len__(self) -> int:
        return sum(len(running) for running in self._running.values())

    async def _run(self, task: Task) -> None:
        """Bring one task to its result; this is the root of its coroutine."""
        result: host_wire.TaskDone | host_wire.TaskFailed
        try:
            result = await self._result(task)
        except Exception as error:
            log.exception("a task could not be asked for", extra={"run": task.run})
            result = host_wire.TaskFailed(key=task.key, reason=f"{type(error).__name__}")
        self._cells.leave((task.run, task.key))
        running = self._running.get(task.run, {})
        running.pop(task.key, None)
        if not running:
            self._running.pop(task.run, None)
        self._deliver(task, result)

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
