"""Runs a translated document: the clock and the queue of external events around the pure kernel.

Each step is made from the bytes of the snapshot before, so a case also says that nothing of a run
is outside of its snapshot.
"""

from __future__ import annotations

import heapq
from typing import Any, Final

from jr2 import Start, kernel
from jr2.chart import Chart
from jr2.host_wire import Emit
from jr2.kernel import Step
from jr2.snapshot import Snapshot, from_json

from .data_model import unpack
from .scxml import ROOT_SESSION

LONGEST: Final = 10.0
"""Seconds of the run's own clock after which a case that has not ended is over."""


class Session:
    """One run of a document and of the documents that it invokes."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.now = 0.0
        self.number = 0
        self.queue: list[tuple[float, int, dict[str, Any]]] = []
        self.step = kernel.start(chart, Start(door=None, run_id="run"))
        self._act(self.step)

    def run(self) -> Snapshot:
        """Deliver what was sent until nothing is left, or the run is over."""
        while self.queue and self.step.snapshot.status == "active":
            self.now, _, sent = heapq.heappop(self.queue)
            if self.now > LONGEST:
                break
            stored = self.step.snapshot.to_json(self.chart)
            snapshot = from_json(self.chart, stored)
            way = self._way(snapshot, sent["to"])
            is_late = sent["delay"] > 0 and self._way(snapshot, sent["from"]) is None
            if way is None or is_late:
                continue
            happened = unpack(sent["send"])
            self.step = kernel.deliver(self.chart, snapshot, happened["name"], happened, way)
            self._act(self.step)
        return self.step.snapshot

    def _act(self, step: Step) -> None:
        for command in step.commands:
            if isinstance(command, Emit) and isinstance(command.payload, dict):
                what: Any = command.payload["what"]
                if "cancel" in what:
                    self.queue = [one for one in self.queue if one[2]["id"] != what["cancel"]]
                    heapq.heapify(self.queue)
                else:
                    self.number += 1
                    heapq.heappush(self.queue, (self.now + what["delay"], self.number, what))

    def _way(self, snapshot: Snapshot, session: str) -> tuple[str, ...] | None:
        """Return the keys of the children on the way to a session; `None`: it is over."""
        if session == ROOT_SESSION:
            return ()
        for key, child in snapshot.children.items():
            if key.partition(":")[2] == f"child.{session}":
                return (key,)
            inner = self._way(child, session)
            if inner:
                return (key, *inner)
        return None


def configuration(chart: Chart, snapshot: Snapshot) -> set[str]:
    """Return the innermost active states."""
    return {chart.nodes[index].id for index in snapshot.entries if not chart.nodes[index].children}
