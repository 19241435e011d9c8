"""The last snapshot of each run that this Assembly process has stepped lately.

The Orchestrator stores every snapshot and sends one only to a process that does not have it. A
snapshot counts for one run and one sequence number, so what was never committed is never used: the
next step of the run names another number, or is asked of the same event again.

Source: design §4.4 ("sticky snapshots").
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from .chart import Chart
from .snapshot import Snapshot, read_again

MOST_BYTES: Final = 64 * 2**20
"""Of snapshots as JSON text, which is what the objects cost within a small factor."""


class Kept:
    """Snapshots by run, the least recently stepped one out first."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._runs: OrderedDict[str, tuple[int, Snapshot, int]] = OrderedDict()
        self._shown: set[str] = set()
        """The runs whose snapshot user code may have seen."""

    def put(
        self, run: str, seq: int, snapshot: Snapshot, size: int, *, is_new: bool = False
    ) -> None:
        """Keep the snapshot of a run after its step with this number; a settled run's goes.

        Args:
            run: its id.
            seq: the sequence number that the run has once the step is stored.
            snapshot: after the step.
            size: its length as JSON text, in bytes.
            is_new: all of its contexts were read from their texts after user code was done.
        """
        self.drop(run)
        if snapshot.status != "active":
            return
        self._runs[run] = (seq, snapshot, size)
        if not is_new:
            self._shown.add(run)
        self._bytes += size
        while self._bytes > self._most and self._runs:
            self.drop(next(iter(self._runs)))

    def take(self, chart: Chart, run: str, seq: int) -> Snapshot | None:
        """Return the snapshot of a run at a sequence number for a step, if it is here.

        Its contexts are as they stand in the snapshot's text: a guard of a step before may have
        changed what is inside one, and then it is read again.

        Args:
            chart: of the run's Machine.
            run: its id.
            seq: the number.
        """
        known = self._runs.get(run)
        if known is None or known[0] != seq:
            return None
        if run in self._shown:
            return read_again(chart, known[1])
        self._shown.add(run)
        return known[1]

    def drop(self, run: str) -> None:
        """Forget a run."""
        self._shown.discard(run)
        known = self._runs.pop(run, None)
        if known is not None:
            self._bytes -= known[2]
