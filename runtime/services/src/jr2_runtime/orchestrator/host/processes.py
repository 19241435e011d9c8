"""The Assembly processes that are running, by the hash of their Assembly.

Each Assembly has one process that makes its steps, and others for its tasks, so that a task that
ends its process never ends a step, and the other way round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from .link import Link
from .process import PING_EVERY, STEP_DEADLINE, AssemblyProcess


class Processes:
    """The processes that were asked for, and no other.

    Args:
        group: owns the tasks that keep the processes there.
        open_link: opens a link to a new process of an Assembly.
        step_deadline: seconds in which a step must answer.
        ping_every: seconds between two pings of the loop of a process with tasks.
    """

    def __init__(
        self,
        group: asyncio.TaskGroup,
        open_link: Callable[[str], Awaitable[Link]],
        *,
        step_deadline: float = STEP_DEADLINE,
        ping_every: float = PING_EVERY,
    ) -> None:
        self._group = group
        self._open_link = open_link
        self._step_deadline = step_deadline
        self._ping_every = ping_every
        self._steps: dict[str, AssemblyProcess] = {}
        self._running: dict[AssemblyProcess, asyncio.Task[None]] = {}

    def for_steps(self, assembly: str) -> AssemblyProcess:
        """Return the process that makes the steps of an Assembly, started when it is not there."""
        process = self._steps.get(assembly)
        if process is None:
            process = self._steps[assembly] = self._start(assembly, None)
        return process

    def another(self, assembly: str) -> AssemblyProcess:
        """Start one more process for tasks of an Assembly; it is ended when its loop is blocked."""
        return self._start(assembly, self._ping_every)

    def _start(self, assembly: str, ping_every: float | None) -> AssemblyProcess:
        process = AssemblyProcess(
            assembly,
            self._open_link,
            step_deadline=self._step_deadline,
            ping_every=ping_every,
        )
        self._running[process] = self._group.create_task(process.run())
        return process

    def end(self, process: AssemblyProcess) -> None:
        """End one process; a second call does nothing."""
        running = self._running.pop(process, None)
        if running is not None:
            running.cancel()
        if self._steps.get(process.assembly) is process:
            del self._steps[process.assembly]

    def end_all(self, assembly: str) -> None:
        """End every process of an Assembly that nobody needs any more."""
        for process in [each for each in self._running if each.assembly == assembly]:
            self.end(process)
