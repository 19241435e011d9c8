"""The Menu of an Agent: the tools that a conversation is started with.

It is every event that an Agent may pick in any state that asks it, in the order of the Machine's
vocabulary, and it stays the same for as long as the Machine does: what a single Turn may pick is
told beside it (`jr2.kernel.allowed`) and judged when the pick is made.

Source: spec/authoring.md §2.6, spec/runtime.md §1.9.
"""

from __future__ import annotations

from typing import Any

from ..chart import Chart
from ..document import accepted_event
from ..events import Event, semantics


def menu(chart: Chart, agent: str) -> tuple[type[Event], ...]:
    """Return the Menu of an Agent.

    Args:
        chart: of the Machine that carries it.
        agent: its slot; one that no state asks has an empty Menu.
    """
    picks = {
        event
        for node in chart.nodes
        for invocation in node.invocations
        if invocation.kind == "turn" and invocation.slot == agent
        for event in invocation.picks
    }
    return tuple(event for event in chart.events if event in picks)


def menu_wire(chart: Chart, agent: str) -> list[dict[str, Any]]:
    """Return a Menu as JSON: `{name, description?, input, semantics}` for each event."""
    return [
        {**accepted_event(event), "semantics": semantics(event)} for event in menu(chart, agent)
    ]
