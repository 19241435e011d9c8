"""Which states a transition leaves and which it enters, by the chart and by what history remembers.

The procedures are those of W3C SCXML, appendix D: the domain of a transition, its exit set and its
entry set. What does not depend on history is worked out once for each transition of a chart.

Source: design §4.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile

from ..chart import ROOT, Chart, Transition

History = Mapping[int, tuple[int, ...]]
"""History node → the states that were active when its parent was left last."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a transition does to the configuration."""

    domain: int | None
    """Active nodes below it are exited; `None` for a transition without target."""
    enters: tuple[int, ...]
    """In entry order, which is document order."""
    defaults: frozenset[int]
    """Compound nodes among them whose initial actions happen."""
    recalled: tuple[tuple[int, int], ...]
    """(node, history node) for each history node whose default was entered below that node."""


def plan_of(chart: Chart, transition: Transition, history: History) -> Plan:
    """Work out what a transition exits and enters; it is remembered when no history decides."""
    entry = _Entry(chart, history)
    plan = entry.plan(transition)
    if not entry.asked_history:
        chart.memo[transition] = plan
    return plan


def initial_plan(chart: Chart) -> Plan:
    """Return what the start of a run enters."""
    entry = _Entry(chart, {})
    entry.enter_initial(ROOT)
    entry.enters.discard(ROOT)
    return entry.done(ROOT)


class _Entry:
    """The entry set of one transition while it is worked out."""

    def __init__(self, chart: Chart, history: History) -> None:
        self.chart = chart
        self.history = history
        self.asked_history = False
        self.enters: set[int] = set()
        self.defaults: set[int] = set()
        self.recalled: dict[int, int] = {}

    def plan(self, transition: Transition) -> Plan:
        if not transition.targets:
            return Plan(None, (), frozenset(), ())
        effective = list(self._effective(transition.targets))
        domain = self._domain(transition, effective)
        for target in transition.targets:
            self._descend(target)
        for target in effective:
            self._ascend(target, domain)
        return self.done(domain)

    def done(self, domain: int) -> Plan:
        return Plan(
            domain,
            tuple(sorted(self.enters)),
            frozenset(self.defaults),
            tuple(sorted(self.recalled.items())),
        )

    def enter_initial(self, index: int) -> None:
        """Enter the initial states of a compound node."""
        initial = self.chart.nodes[index].initial
        self.defaults.add(index)
        for target in initial:
            self._descend(target)
        for target in initial:
            self._ascend(target, index)

    def _domain(self, transition: Transition, effective: Iterable[int]) -> int:
        chart, source = self.chart, transition.source
        targets = list(effective)
        if (
            transition.internal
            and chart.nodes[source].kind == "compound"
            and all(chart.is_below(target, source) for target in targets)
        ):
            return source
        # The least common compound ancestor of the source and all targets; the root is one for
        # each, and its own when it is the source.
        return next(
            (
                above
                for above in chart.above[source]
                if chart.nodes[above].kind == "compound"
                and all(chart.is_below(target, above) for target in targets)
            ),
            ROOT,
        )

    def _effective(self, targets: Iterable[int]) -> Iterator[int]:
        for target in targets:
            if self.chart.nodes[target].kind == "history":
                yield from self._effective(self._remembered(target))
            else:
                yield target

    def _remembered(self, index: int) -> tuple[int, ...]:
        self.asked_history = True
        return self.history.get(index) or self.chart.nodes[index].initial

    def _descend(self, index: int) -> None:
        node = self.chart.nodes[index]
        if node.kind == "history":
            assert node.parent is not None
            remembered = self._remembered(index)
            if index not in self.history:
                self.recalled[node.parent] = index
            for target in remembered:
                self._descend(target)
            for target in remembered:
                self._ascend(target, node.parent)
            return
        self.enters.add(index)
        if node.kind == "compound":
            self.enter_initial(index)
        elif node.kind == "parallel":
            self._enter_regions(index)

    def _ascend(self, index: int, domain: int) -> None:
        for above in takewhile(lambda above: above != domain, self.chart.above[index]):
            self.enters.add(above)
            if self.chart.nodes[above].kind == "parallel":
                self._enter_regions(above)

    def _enter_regions(self, index: int) -> None:
        """Enter by default the regions of a parallel node that no target is in."""
        for child in self.chart.nodes[index].children:
            if self.chart.nodes[child].kind == "history":
                continue
            if not any(self.chart.is_below(entered, child) for entered in self.enters):
                self._descend(child)
