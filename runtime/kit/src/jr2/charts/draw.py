"""Draws a Machine as a Mermaid state diagram: the same Machine always gives the same text.

States nest as in the chart, regions of a parallel state stand beside each other, a child Machine
is drawn inside the state that invokes it. A state's description says what runs and waits in it. A
transition of a state that others lie in starts at a box "any state" inside of it, since it is taken
from any of them. A transition without a target is a loop that says "(stays)".

Nothing of a run and no text of the author's code but names is drawn: events, guards by the name of
their function, delays, slots, Gates.

Source: design §4.6, ADR-0136.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from ..chart import ANY_EVENT, EVENTLESS, ROOT, Chart, Invocation, Node, Transition
from . import labels
from .statements import HEADER

_END: Final = "[*]"
_INDENT: Final = "    "
_RUNS: Final = {
    "task": "runs {slot}",
    "effect": "Effect {slot}",
    "turn": "Turn of {slot}",
    "sandbox": "Sandbox",
}
_Region = Callable[[int], None]
"""Draws a part of a state at a depth."""


def draw(chart: Chart) -> str:
    """Return the Chart of a Machine, a text that ends with a newline."""
    drawing = _Drawing()
    drawing.lines += [
        f"%% The Machine {labels.text(chart.id)}, written by `jr2 chart`: edit the Machine, then",
        "%% run it again. Comments, styles and a direction may be added here.",
        HEADER,
    ]
    _Machine(chart, drawing).root(1)
    drawing.lines += drawing.edges
    return "\n".join(drawing.lines) + "\n"


@dataclass
class _Drawing:
    """What is drawn so far; edges come last, when each state has its place."""

    lines: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    ids: labels.Ids = field(default_factory=labels.Ids)

    def put(self, depth: int, line: str) -> None:
        self.lines.append(_INDENT * depth + line)

    def edge(self, source: str, target: str, label: str) -> None:
        self.edges.append(f"{_INDENT}{source} --> {target} : {label}")


class _Machine:
    """Draws one chart into a drawing.

    Args:
        chart: what is drawn.
        drawing: where.
        place: the keys of the state that it is drawn in.
        actors: its actor path, which names its Gates.
    """

    def __init__(
        self,
        chart: Chart,
        drawing: _Drawing,
        place: tuple[str, ...] = (),
        actors: tuple[str, ...] = (),
    ) -> None:
        self.chart = chart
        self.actors = actors
        self.drawing = drawing
        self.place = place
        self.ids = {
            node.index: drawing.ids.give((*place, *node.path))
            for node in chart.nodes
            if node.index != ROOT
        }
        self.any_ids: dict[int, str] = {}

    def root(self, depth: int) -> None:
        """Draw the whole chart."""
        root = self.chart.nodes[ROOT]
        if root.kind == "parallel":
            # Regions stand beside each other only inside of a state.
            name = self.drawing.ids.give((*self.place, self.chart.id))
            self.drawing.put(depth, f'state "{labels.text(self.chart.id)}" as {name} {{')
            self._content(root, depth + 1)
            self.drawing.put(depth, "}")
        else:
            self._content(root, depth)

    def _content(self, node: Node, depth: int) -> None:
        for number, region in enumerate(self._regions(node)):
            if number:
                self.drawing.put(depth, "--")
            region(depth)
        for transition in node.transitions:
            self._edges(node, transition)

    def _regions(self, node: Node) -> list[_Region]:
        """Return what is active beside each other in a node: one part or more."""
        children = [self.chart.nodes[child] for child in node.children]
        apart = node.kind == "parallel"
        regions: list[_Region] = []
        if apart:
            for child in children:
                entered = () if child.kind == "history" else (child.index,)
                regions.append(partial(self._region, [child], entered))
        elif children:
            regions.append(partial(self._region, children, node.initial))
        for invocation in node.invocations:
            machine = self._invoked(invocation)
            if machine is not None:
                regions.append(partial(self._child, node, invocation, machine))
        if any(self._starts_inside(node, transition) for transition in node.transitions):
            box = partial(self._any_box, node)
            self.any_ids[node.index] = self.drawing.ids.give((*self.place, *node.path, "any"))
            if apart:
                regions.append(box)
            else:
                regions[0] = partial(_both, regions[0], box)
        return regions

    def _region(self, children: Sequence[Node], entered: Sequence[int], depth: int) -> None:
        for index in entered:
            self.drawing.put(depth, f"{_END} --> {self.ids[index]}")
        for child in children:
            self._state(child, depth)

    def _any_box(self, node: Node, depth: int) -> None:
        words = "any state" if node.index == ROOT else f"any state in {node.key}"
        name = self.any_ids[node.index]
        self.drawing.put(depth, f'state "{labels.text(words)}" as {name}')

    def _child(self, node: Node, invocation: Invocation, machine: Chart, depth: int) -> None:
        place = (*self.place, *node.path, invocation.id)
        kind = "pool" if invocation.kind == "pool" else "slot"
        how = f"{kind} {invocation.slot}"
        if self.chart.children[invocation.slot].inline:
            how = "inline"
        name = self.drawing.ids.give(place)
        words = labels.text(f"Machine {machine.id} ({how})")
        self.drawing.put(depth, f'state "{words}" as {name} {{')
        actor = "(item)" if invocation.kind == "pool" else invocation.actor or invocation.id
        _Machine(machine, self.drawing, place, (*self.actors, actor)).root(depth + 1)
        self.drawing.put(depth, "}")

    def _state(self, node: Node, depth: int) -> None:
        name = self.ids[node.index]
        says = [labels.text(line) for line in self._description(node)]
        if node.children or any(self._invoked(one) is not None for one in node.invocations):
            label = " · ".join([labels.text(node.key), *says])
            self.drawing.put(depth, f'state "{label}" as {name} {{')
            self._content(node, depth + 1)
            self.drawing.put(depth, "}")
            return
        self.drawing.put(depth, f'state "{labels.text(_title(node))}" as {name}')
        for line in says:
            self.drawing.put(depth, f"{name} : {line}")
        if node.kind == "final":
            self.drawing.put(depth, f"{name} --> {_END}")
        if node.kind == "history":
            for target in node.initial:
                self.drawing.edge(name, self.ids[target], "at first")
        for transition in node.transitions:
            self._edges(node, transition)

    def _description(self, node: Node) -> list[str]:
        said = [
            _RUNS[one.kind].format(slot=one.slot)
            for one in node.invocations
            if self._invoked(one) is None
        ]
        if node.gate is not None:
            gate = node.gate.gate
            own = ".".join((*self.actors, node.gate.named or node.id))
            name = "(computed)" if callable(gate) else gate or own
            said.append(f"waits at Gate {name}")
        return said

    def _invoked(self, invocation: Invocation) -> Chart | None:
        if invocation.kind not in ("child", "pool"):
            return None
        return self.chart.children[invocation.slot].chart

    def _edges(self, node: Node, transition: Transition) -> None:
        inside = self._starts_inside(node, transition)
        source = self.any_ids[node.index] if inside else self.ids[node.index]
        label = labels.text(self._event(node, transition.event))
        if transition.guard is not None:
            label += f" [{labels.text(_name(transition.guard))}]"
        if not transition.targets:
            self.drawing.edge(source, source, f"{label} (stays)")
        for target in transition.targets:
            self.drawing.edge(source, self.ids[target], label)

    def _starts_inside(self, node: Node, transition: Transition) -> bool:
        """Whether a transition of a state with others in it does not lead out of it."""
        return bool(node.children) and (
            node.index == ROOT
            or not transition.targets
            or any(self.chart.is_below(target, node.index) for target in transition.targets)
        )

    def _event(self, node: Node, event: str) -> str:
        if event == EVENTLESS:
            return "always"
        if event == ANY_EVENT:
            return "any event"
        for timer in node.timers:
            if timer.event == event:
                delay = timer.delay
                return f"after {'(computed)' if callable(delay) else labels.duration(delay)}"
        for invocation in node.invocations:
            # The fault of a Turn is an event of its own, with a name that an author knows.
            if event in (invocation.done, invocation.failed) and invocation.kind != "turn":
                machine = self._invoked(invocation)
                what = machine.id if machine is not None else invocation.slot
                return f"{what} {'done' if event == invocation.done else 'failed'}"
        return "done" if event.startswith("done.state.") else event


def _both(first: _Region, second: _Region, depth: int) -> None:
    first(depth)
    second(depth)


def _title(node: Node) -> str:
    if node.kind != "history":
        return node.key
    return f"{'H*' if node.deep else 'H'} {node.key}"


def _name(function: Callable[..., Any]) -> str:
    inner = getattr(function, "__wrapped__", function)
    name = getattr(inner, "__name__", "<lambda>")
    return "guard" if name == "<lambda>" else str(name)
