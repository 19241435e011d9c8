"""Runs as they were last committed, so that a run with much to do is not read again for each event.

The store decides all the same: a commit names the sequence number that it starts from, so a run
that is not as it was remembered is read again.

Source: design §4.3 ("runs are loaded when touched").
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from ..store.rows import Run

MOST_BYTES: Final = 32 * 2**20
_EACH: Final = 1024
"""What a run costs beside its texts."""


class Recent:
    """The runs that were stepped last, within a number of bytes."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._runs: OrderedDict[str, tuple[Run, int]] = OrderedDict()

    def put(self, run: Run) -> None:
        """Remember a live run as it is in the store now."""
        if run.id in self._runs:
            self.forget(run.id)
        if run.status != "live":
            return
        size = size_of(run)
        self._runs[run.id] = (run, size)
        self._bytes += size
        while self._bytes > self._most:
            self.forget(next(iter(self._runs)))

    def take(self, run: str) -> Run | None:
        """Return a live run, which is forgotten until it is put back."""
        known = self._runs.pop(run, None)
        if known is None:
            return None
        self._bytes -= known[1]
        return known[0]

    def forget(self, run: str) -> None:
        """The run is not as it was, or somebody works on it."""
        self.take(run)


def size_of(run: Run) -> int:
    """Return the bytes that a run takes in memory."""
    return len(run.snapshot) + len(run.view) + _EACH
