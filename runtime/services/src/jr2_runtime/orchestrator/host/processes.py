"""The Assembly processes that are running, by the hash of their Assembly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from .link import Link
from .process import STEP_DEADLINE, AssemblyProcess


class Processes:
    """One process for each Assembly that was asked for, and no other.

    Args:
        group: owns the tasks that keep the processes there.
        open_link: opens a link to a new process of an Assembly.
        step_deadline: seconds in which a step must answer.
    """

    def __init__(
        self,
        group: asyncio.TaskGroup,
        open_link: Callable[[str], Awaitable[Link]],
        *,
        step_deadline: float = STEP_DEADLINE,
    ) -> None:
        self._group = group
        self._open_link = open_link
        self._step_deadline = step_deadline
        self._running: dict[str, tuple[AssemblyProcess, asyncio.Task[None]]] = {}

    def get(self, assembly: str) -> AssemblyProcess:
        """Return the process of an Assembly, started when it is not there yet."""
        running = self._running.get(assembly)
        if running is None:
            process = AssemblyProcess(assembly, self._open_link, step_deadline=self._step_deadline)
            running = (process, self._group.create_task(process.run()))
            self._running[assembly] = running
        return running[0]

    def end(self, assembly: str) -> None:
        """End the process of an Assembly that nobody needs any more."""
        running = self._running.pop(assembly, None)
        if running is not None:
            running[1].cancel()

    def end_all(self) -> None:
        """End every process."""
        for assembly in list(self._running):
            self.end(assembly)
