"""What an Agent may pick now: the guards of the invoking state, asked without a payload.

A guard is asked with a probe in place of the event. One that answers without reading the probe says
the truth for every payload. One that reads it, or raises, cannot be known before the pick, so the
pick is allowed and judged when it is delivered. A transition with neither target nor action is
never a reason to allow a pick.

Source: spec/authoring.md §2.6, spec/runtime.md §1.9.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from ..chart import Chart, Invocation, Node, Transition
from ..events import Event, event_name
from ..snapshot import Snapshot
from .faults import USER_ERRORS
from .keys import BETWEEN, locate

Answer = Literal["yes", "no", "unknown"]


class FoundInvocation(NamedTuple):
    """An invocation in the Machine that it belongs to."""

    chart: Chart
    snapshot: Snapshot
    node: Node
    invocation: Invocation


def find(chart: Chart, snapshot: Snapshot, key: str) -> FoundInvocation | None:
    """Return the invocation of a command's key, in whichever Machine of the run it is."""
    while True:
        local, between, rest = key.partition(BETWEEN)
        found = locate(chart, snapshot.entries, local)
        if snapshot.status != "active" or found is None or not isinstance(found.what, Invocation):
            return None
        if not between:
            return FoundInvocation(chart, snapshot, found.node, found.what)
        child = snapshot.children.get(local)
        if child is None:
            return None
        chart, snapshot, key = chart.children[found.what.slot].chart, child, rest


def allowed(chart: Chart, snapshot: Snapshot, key: str) -> tuple[str, ...]:
    """Return the names of what a Turn may pick now, in the order of its Menu.

    Args:
        chart: the run's.
        snapshot: where it stands.
        key: of the `start_turn` command; one that is not live may pick nothing.
    """
    found = find(chart, snapshot, key)
    if found is None:
        return ()
    return tuple(
        event_name(event)
        for event in found.invocation.picks
        if may_move(found.chart, found.snapshot, found.node.index, event)
    )


def may_move(chart: Chart, snapshot: Snapshot, within: int, event: type[Event]) -> bool:
    """Whether an event may move a Machine, as far as its guards can say without the payload.

    Args:
        chart: the Machine's.
        snapshot: the Machine's part of the run.
        within: the state that the event is addressed to.
        event: its class.
    """
    last = chart.last[within]
    leaves = (
        index
        for index in sorted(snapshot.entries)
        if within <= index <= last and not chart.nodes[index].children
    )
    return any(_may_take(chart, snapshot, leaf, event) for leaf in leaves)


def _may_take(chart: Chart, snapshot: Snapshot, leaf: int, event: type[Event]) -> bool:
    for transition in chart.candidates(leaf, event_name(event)):
        answer = _ask(transition, snapshot, event)
        if answer == "no":
            continue
        if transition.targets or transition.actions:
            return True
        if answer == "yes":
            # It takes the event and does nothing, so what stands after it is never asked.
            return False
    return False


def _ask(transition: Transition, snapshot: Snapshot, event: type[Event]) -> Answer:
    if transition.guard is None:
        return "yes"
    read: list[str] = []
    try:
        answer = transition.guard(snapshot.context, _probe(event, read))
    except USER_ERRORS:
        return "unknown"
    return "unknown" if read else "yes" if answer else "no"


def _probe(event: type[Event], read: list[str]) -> Any:
    """Return a stand-in for an event of this class, which records that it is read."""

    def reads(name: str) -> Any:
        read.append(name)
        raise AttributeError(f"the payload of {event_name(event)!r} is not known yet")

    class Probe:
        def __getattribute__(self, name: str) -> Any:
            return event if name == "__class__" else reads(name)

        # What Python looks up on the class, past the method above.
        def __eq__(self, other: object) -> bool:
            return bool(reads("__eq__"))

        def __hash__(self) -> int:
            return int(reads("__hash__"))

        def __repr__(self) -> str:
            return str(reads("__repr__"))

        def __iter__(self) -> Any:
            return reads("__iter__")

    return Probe()
