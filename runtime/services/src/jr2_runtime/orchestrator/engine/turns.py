"""Which task of user code runs next, when more want to run than may at once.

The runs take turns: each gets one of its tasks started, in the order in which they came, before the
next one gets another. A run that has its share running waits for one of them to end. What waits is
here by its name and its size alone; the task itself lies in the store.

Source: ADR-0121.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Waiting(NamedTuple):
    """One task that waits for its turn."""

    run: str
    key: str
    size: int
    """Bytes of its input."""


class Turns:
    """The tasks that wait."""

    def __init__(self) -> None:
        self._lines: dict[str, dict[str, int]] = {}
        """Run → key → size; whose turn is next stands first."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, id_: tuple[str, str]) -> bool:
        return id_[1] in self._lines.get(id_[0], ())

    def add(self, waiting: Waiting) -> None:
        """Let a task wait behind those of its run, and a run behind the others."""
        line = self._lines.setdefault(waiting.run, {})
        self._count += waiting.key not in line
        line[waiting.key] = waiting.size

    def remove(self, run: str, key: str) -> bool:
        """Forget a task; return whether it waited."""
        line = self._lines.get(run, {})
        if line.pop(key, None) is None:
            return False
        self._count -= 1
        if not line:
            del self._lines[run]
        return True

    def keys(self, run: str) -> list[str]:
        """Return which tasks of a run wait."""
        return list(self._lines.get(run, ()))

    def first(self, may_run: Callable[[str], bool]) -> Waiting | None:
        """Return the task whose turn it is, of the runs that may have one more."""
        for run, line in self._lines.items():
            if may_run(run):
                key, size = next(iter(line.items()))
                return Waiting(run, key, size)
        return None

    def take(self, waiting: Waiting) -> None:
        """Give a task its turn; its run stands last now."""
        self.remove(waiting.run, waiting.key)
        line = self._lines.pop(waiting.run, None)
        if line is not None:
            self._lines[waiting.run] = line
