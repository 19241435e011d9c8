"""Turns what an author wrote down into a chart.

The handles of `jr2.machine` write into drafts; `compile_chart` reads them once, numbers the states
in document order (the order in which each parent made them). What is wrong with a statement is
noted in the draft, so that the build can say all of it; each text names the Machine and the state.

Source: spec/authoring.md §2.2, §2.8, §2.14.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from . import chart as charts
from .chart import Action, Chart, Gate, Invocation, InvocationKind, Node, Timer, Transition
from .errors import BuildRefused
from .events import NAME, AgentFault, Audience, Event, audience, event_name


@dataclass(eq=False, kw_only=True)
class TransitionDraft:
    """A transition whose target is still a draft."""

    event: str
    event_class: type[Event] | None = None
    target: StateDraft | None
    internal: bool = False
    guard: charts.Guard | None = None
    assign: Callable[[Any, Any], Any] | None = None
    emit: Callable[[Any, Any], Any] | None = None


@dataclass(eq=False, kw_only=True)
class GateDraft:
    """A Gate whose accepted events may still have to be derived."""

    gate: str | Callable[[Any], str] | None
    meta: Callable[[Any], Any] | None
    accepts: tuple[type[Event], ...] | None


@dataclass(eq=False, kw_only=True)
class InvocationDraft:
    """What runs while a state is active; of a Turn, its picks are derived at the build."""

    id: str
    kind: InvocationKind
    slot: str
    input: Callable[[Any], Any] | None
    encode_input: charts.Encode
    decode_output: charts.Decode


@dataclass(eq=False, kw_only=True)
class StateDraft:
    """A state as it was written down; the root is the one without parent."""

    machine: str
    key: str
    parent: StateDraft | None
    final: bool = False
    initial: bool = False
    children: list[StateDraft] = field(default_factory=list)
    transitions: list[TransitionDraft] = field(default_factory=list)
    invocations: list[InvocationDraft] = field(default_factory=list)
    timers: list[timedelta | Callable[[Any], timedelta]] = field(default_factory=list)
    gate: GateDraft | None = None
    output: Callable[[Any], Any] | None = None
    built: bool = False
    """Of the root: nothing may be added any more."""
    problems: list[str] = field(default_factory=list)
    """Of the root: what is wrong so far; the build says all of it."""

    @property
    def path(self) -> tuple[str, ...]:
        """The keys from below the root."""
        return () if self.parent is None else (*self.parent.path, self.key)

    @property
    def id(self) -> str:
        """The path joined with dots."""
        return ".".join(self.path)

    @property
    def root(self) -> StateDraft:
        """The root that the state belongs to."""
        return self if self.parent is None else self.parent.root

    def up(self) -> Iterator[StateDraft]:
        """Yield the state and its ancestors, innermost first."""
        yield self
        if self.parent is not None:
            yield from self.parent.up()

    def said(self, problem: str) -> str:
        """Return what is wrong in this state as a person reads it."""
        place = f' state "{self.id}"' if self.parent is not None else ""
        return f'machine "{self.machine}":{place} {problem}'

    def wrong(self, problem: str) -> None:
        """Note what is wrong in this state: the build says it, with all else that is wrong."""
        self.root.problems.append(self.said(problem))

    def down(self) -> Iterator[StateDraft]:
        """Yield the state and those inside it, in document order."""
        yield self
        for child in self.children:
            yield from child.down()

    def add(self, key: str, *, final: bool, initial: bool) -> StateDraft:
        """Make a state inside this one; a bad or repeated name is noted, as is a second initial.

        Raises:
            BuildRefused: the Machine is built.
        """
        self.change()
        if not isinstance(key, str) or not NAME.fullmatch(key):
            self.wrong(f"has a state {key!r}: a name has letters, digits, _ and - only")
            key = str(key)
        elif any(child.key == key for child in self.children):
            self.wrong(f'has two states "{key}"')
        if initial:
            first = next((child.key for child in self.children if child.initial), None)
            if first is not None:
                self.wrong(f'has two initial states, "{first}" and "{key}"')
        child = StateDraft(machine=self.machine, key=key, parent=self, final=final, initial=initial)
        self.children.append(child)
        return child

    def change(self) -> None:
        """Refuse to write into a Machine that is built.

        Raises:
            BuildRefused: it is built.
        """
        if self.root.built:
            raise BuildRefused(
                self.said("is changed after .build(): what was built would not have it")
            )


def compile_chart(
    root: StateDraft,
    *,
    context: type[Any],
    start: Callable[[Any], Any],
    encode_output: charts.Encode | None,
    decode_output: charts.Decode | None,
) -> Chart:
    """Return the chart of a Machine.

    The rules of `jr2.rules` hold for it.
    """
    order: dict[StateDraft, int] = {}
    _number(root, order)
    return Chart(
        id=root.machine,
        nodes=tuple(_node(draft, order) for draft in order),
        context=context,
        start=start,
        encode_output=encode_output,
        decode_output=decode_output,
        events=vocabulary(root),
    )


def done_event(draft: StateDraft, invocation: InvocationDraft) -> str:
    """Return the event that an invocation ended well."""
    return f"done.{invocation.kind}.{draft.id}.{invocation.id}"


def failed_event(draft: StateDraft, invocation: InvocationDraft) -> str:
    """Return the event that an invocation ended badly; a Turn's is an event of the vocabulary."""
    if invocation.kind == "turn":
        return event_name(AgentFault)
    return f"error.{invocation.kind}.{draft.id}.{invocation.id}"


def handled(draft: StateDraft, *audiences: Audience) -> tuple[type[Event], ...]:
    """Return the events that a state hears and these may send: its own first, then those around."""
    found: dict[type[Event], None] = {}
    for state in draft.up():
        for transition in state.transitions:
            event = transition.event_class
            if event is not None and audience(event) in audiences:
                found.setdefault(event)
    return tuple(found)


def external(draft: StateDraft) -> tuple[type[Event], ...]:
    """Return the events from outside that a state hears."""
    return handled(draft, "external", "any")


def picks(draft: StateDraft) -> tuple[type[Event], ...]:
    """Return the events that an Agent may pick at a state."""
    return handled(draft, "agent", "any")


def vocabulary(root: StateDraft) -> tuple[type[Event], ...]:
    """Return the events that a Machine hears from outside or from an Agent, in document order."""
    found: dict[type[Event], None] = {}
    for draft in root.down():
        for transition in draft.transitions:
            event = transition.event_class
            if event is not None and audience(event) != "jr2":
                found.setdefault(event)
    return tuple(found)


def address(draft: StateDraft) -> str | Callable[[Any], str]:
    """Return the address of a state's Gate."""
    assert draft.gate is not None
    return draft.id if draft.gate.gate is None else draft.gate.gate


def _number(draft: StateDraft, order: dict[StateDraft, int]) -> None:
    order[draft] = len(order)
    for child in draft.children:
        _number(child, order)


def _actions(transition: TransitionDraft) -> tuple[Action, ...]:
    found: list[Action] = []
    if transition.assign is not None:
        found.append(Action("assign", transition.assign))
    if transition.emit is not None:
        found.append(Action("emit", transition.emit))
    return tuple(found)


def _node(draft: StateDraft, order: dict[StateDraft, int]) -> Node:
    index = order[draft]
    gate = None
    if draft.gate is not None:
        accepts = external(draft) if draft.gate.accepts is None else draft.gate.accepts
        gate = Gate(gate=draft.gate.gate, meta=draft.gate.meta, accepts=accepts)
    initial = tuple(order[child] for child in draft.children if child.initial)
    return Node(
        index=index,
        kind="final" if draft.final else "compound" if draft.children else "atomic",
        path=draft.path,
        parent=None if draft.parent is None else order[draft.parent],
        children=tuple(order[child] for child in draft.children),
        initial=initial,
        transitions=tuple(
            Transition(
                source=index,
                event=one.event,
                targets=() if one.target is None else (order[one.target],),
                internal=one.internal,
                guard=one.guard,
                actions=_actions(one),
            )
            for one in draft.transitions
        ),
        invocations=tuple(
            Invocation(
                id=one.id,
                kind=one.kind,
                slot=one.slot,
                input=one.input,
                encode_input=one.encode_input,
                decode_output=one.decode_output,
                done=done_event(draft, one),
                failed=failed_event(draft, one),
                picks=picks(draft) if one.kind == "turn" else (),
            )
            for one in draft.invocations
        ),
        timers=tuple(
            Timer(id=str(number), event=f"after.{draft.id}.{number}", delay=delay)
            for number, delay in enumerate(draft.timers)
        ),
        gate=gate,
        output=draft.output,
    )
