"""The Gates that a composed Machine can open, by the addresses that they have in a run.

An address is the state's path with the actor path before it, or what the author wrote, which stands
for itself wherever the Machine is composed. What a function makes is known in a run alone.

Source: spec/authoring.md §2.8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .chart import Chart


def addresses(chart: Chart, actors: Sequence[str]) -> Iterator[str]:
    """Yield the addresses that are known before a run, in document order.

    Args:
        chart: of a composed Machine.
        actors: its actor path.
    """
    for node in chart.nodes:
        gate = node.gate
        if gate is not None and isinstance(gate.gate, str):
            yield gate.gate
        elif gate is not None and gate.gate is None:
            yield ".".join((*actors, gate.named or node.id))
        for invocation in node.invocations:
            if invocation.kind == "child":
                inner = chart.children[invocation.slot].chart
                yield from addresses(inner, (*actors, invocation.actor))
