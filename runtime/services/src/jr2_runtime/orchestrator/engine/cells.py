"""Which tasks share a process, and whose fault it is when that process ends.

The tasks of an Assembly share one process, for most never do harm. When it ends under them, one of
them may have ended it. They are split over two processes; the half with the culprit ends again and
is split again, until the culprit is alone. The others go on wherever they are, and new tasks get a
process that no suspect is in. A task whose process ends twice while it is alone in it has failed.
A process that is ended because a task blocks it counts as one that ended.

When the worker as a whole has gone, nobody can be told apart: that splits nothing, and a task that
met it five times has failed.

Source: design §4.4 ("faults its own runs").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ..host import AssemblyProcess, Processes

ALONE: Final = 2
"""How often a process may end under a task that is alone in it."""
LOSSES: Final = 5
"""How often the whole worker may go under a task."""

TaskId = tuple[str, str]
"""Run id and key."""


@dataclass(slots=True, eq=False)
class Cell:
    """Tasks that share a process."""

    process: AssemblyProcess
    suspect: bool
    tasks: dict[TaskId, None] = field(default_factory=dict)
    """In the order in which they came."""
    ends: int = 0
    """How often its process has ended."""
    alone: int = 0
    """How often it ended with one task in it."""


class Cells:
    """The cells of all Assemblies.

    Args:
        processes: starts and ends the process of each cell.
    """

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._open: dict[str, Cell] = {}
        self._of: dict[TaskId, Cell] = {}
        self._losses: dict[TaskId, int] = {}

    def of(self, task: TaskId, assembly: str) -> Cell:
        """Return the cell of a task; a new task joins those that are under no suspicion."""
        cell = self._of.get(task)
        if cell is None:
            open_ = self._open.get(assembly)
            if open_ is None:
                open_ = self._open[assembly] = Cell(self._processes.another(assembly), False)
            cell = self._of[task] = open_
            cell.tasks[task] = None
        return cell

    def where(self, task: TaskId) -> Cell | None:
        """Return the cell of a task that has one."""
        return self._of.get(task)

    def leave(self, task: TaskId) -> None:
        """A task is over; a cell of suspects ends with its last one."""
        self._losses.pop(task, None)
        cell = self._of.pop(task, None)
        if cell is None:
            return
        del cell.tasks[task]
        if cell.suspect and not cell.tasks:
            self._processes.end(cell.process)

    def forget(self, assembly: str) -> None:
        """The Assembly is gone, and its processes with it."""
        self._open.pop(assembly, None)

    def worker_went(self, task: TaskId) -> bool:
        """The whole worker went under a task; return whether that was once too often."""
        self._losses[task] = self._losses.get(task, 0) + 1
        return self._losses[task] >= LOSSES

    def ended(self, cell: Cell, ends: int) -> bool:
        """The process of a cell ended; return whether the task that says so has failed by it.

        Args:
            cell: where the task was when it was asked.
            ends: `cell.ends` at that time; every task of a cell tells of the same end.
        """
        if cell.ends != ends:
            return False
        cell.ends += 1
        # Who is under suspicion gets no company, and shares its strikes with nobody who comes later.
        if self._open.get(cell.process.assembly) is cell:
            del self._open[cell.process.assembly]
        cell.suspect = True
        if len(cell.tasks) <= 1:
            cell.alone += 1
            return cell.alone >= ALONE
        self._split(cell)
        return False

    def _split(self, cell: Cell) -> None:
        """Move half of the tasks to a process of their own; both halves are suspects now."""
        other = Cell(self._processes.another(cell.process.assembly), True)
        tasks = list(cell.tasks)
        for task in tasks[len(tasks) // 2 :]:
            del cell.tasks[task]
            other.tasks[task] = None
            self._of[task] = other
