"""Turns what an author wrote down into a chart, and refuses what cannot be one.

The handles of `jr2.machine` write into drafts; `compile_chart` reads them once, numbers the states
in document order (the order in which each parent made them) and checks the rules that only the
whole Machine can answer. Each refusal names the Machine and the state.

Source: spec/authoring.md §2.2, §2.8, §2.14.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pydantic import BaseModel
from pydantic.errors import PydanticUserError

from . import accepted
from . import chart as charts
from .chart import Action, Chart, Gate, Invocation, Node, Timer, Transition
from .errors import BuildRefused
from .events import NAME, Event, audience, event_name
from .tasks import Task


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
class StateDraft:
    """A state as it was written down; the root is the one without parent."""

    machine: str
    key: str
    parent: StateDraft | None
    final: bool = False
    initial: bool = False
    children: list[StateDraft] = field(default_factory=list)
    transitions: list[TransitionDraft] = field(default_factory=list)
    invocations: list[tuple[str, Task[Any, Any], Callable[[Any], Any] | None]] = field(
        default_factory=list
    )
    timers: list[timedelta | Callable[[Any], timedelta]] = field(default_factory=list)
    gate: GateDraft | None = None
    output: Callable[[Any], Any] | None = None
    built: bool = False
    """Of the root: nothing may be added any more."""

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

    def refuse(self, problem: str) -> BuildRefused:
        """Return the refusal of something in this state."""
        place = f' state "{self.id}"' if self.parent is not None else ""
        return BuildRefused(f'machine "{self.machine}":{place} {problem}')

    def add(self, key: str, *, final: bool, initial: bool) -> StateDraft:
        """Make a state inside this one.

        Raises:
            BuildRefused: a bad name, a name used twice, or a second initial state.
        """
        self.change()
        if not NAME.fullmatch(key):
            raise self.refuse(
                f"has a state {key!r}: a name has letters, digits, _ and - only".lstrip()
            )
        if any(child.key == key for child in self.children):
            raise self.refuse(f'has two states "{key}"')
        if initial:
            first = next((child.key for child in self.children if child.initial), None)
            if first is not None:
                raise self.refuse(f'has two initial states, "{first}" and "{key}"')
        child = StateDraft(machine=self.machine, key=key, parent=self, final=final, initial=initial)
        self.children.append(child)
        return child

    def change(self) -> None:
        """Refuse to write into a Machine that is built.

        Raises:
            BuildRefused: it is built.
        """
        if self.root.built:
            raise self.refuse("is changed after .build(): what was built would not have it")


def compile_chart(
    root: StateDraft,
    *,
    context: type[Any],
    start: Callable[[Any], Any],
    encode_output: Callable[[Any], Any] | None,
) -> Chart:
    """Return the chart of a Machine.

    Raises:
        BuildRefused: the first rule that is not met, in document order.
    """
    if not root.children:
        raise root.refuse("has no states")
    order: dict[StateDraft, int] = {}
    _number(root, order)
    for draft in order:
        _check(draft, with_output=encode_output is not None)
    events = _vocabulary(order)
    for event in events:
        check_schema(root, f'the event "{event_name(event)}"', event)
    return Chart(
        id=root.machine,
        nodes=tuple(_node(draft, order) for draft in order),
        context=context,
        start=start,
        encode_output=encode_output,
        events=events,
    )


def check_schema(root: StateDraft, what: str, model: type[BaseModel]) -> None:
    """Refuse a model that has no JSON Schema, for then nobody can be told what it takes.

    Raises:
        BuildRefused: a field has a type that JSON has no form for.
    """
    try:
        accepted.schema(model)
    except (PydanticUserError, TypeError, ValueError) as bad:
        raise root.refuse(f"cannot say what {what} takes: {bad}") from bad


def _number(draft: StateDraft, order: dict[StateDraft, int]) -> None:
    order[draft] = len(order)
    for child in draft.children:
        _number(child, order)


def _check(draft: StateDraft, *, with_output: bool) -> None:
    if draft.children and not any(child.initial for child in draft.children):
        raise draft.refuse(
            "has no initial state: give one of its states initial=True "
            f"({', '.join(child.key for child in draft.children)})"
        )
    for transition in draft.transitions:
        target = transition.target
        if target is not None and target.root is not draft.root:
            raise draft.refuse(
                f'goes to state "{target.id}" of another machine, "{target.machine}", on '
                f'"{transition.event}"'
            )
        if transition.event == _state_done(draft) and not draft.children:
            raise draft.refuse(
                "has .done(…) and no states of its own, so nothing completes it: a task's "
                ".done(…) is chained to .run(…)"
            )
    if draft.final and draft.parent is draft.root:
        if with_output and draft.output is None:
            raise draft.refuse("is final without an output, and the Machine declares output=")
        if not with_output and draft.output is not None:
            raise draft.refuse("has an output, and the Machine declares no output=")
    if draft.gate is not None:
        _check_gate(draft, draft.gate)


def _check_gate(draft: StateDraft, gate: GateDraft) -> None:
    derived = _external(draft)
    if gate.accepts is None and not derived:
        raise draft.refuse(
            "has a Gate that accepts nothing: neither it nor a state around it handles an event "
            "that may come from outside"
        )
    if gate.accepts is not None:
        if not gate.accepts:
            raise draft.refuse("has a Gate with an empty accepts=")
        for event in gate.accepts:
            if event not in derived:
                listed = ", ".join(event_name(one) for one in derived) or "none"
                raise draft.refuse(
                    f'has a Gate that accepts "{event_name(event)}", which it does not handle '
                    f"from outside (handled: {listed})"
                )
    for above in list(draft.up())[1:]:
        if above.gate is not None and _address(above) == _address(draft):
            raise draft.refuse(
                f'has a Gate "{_address(draft)}", and so has the state "{above.id}" around it'
            )


def _address(draft: StateDraft) -> str | Callable[[Any], str]:
    assert draft.gate is not None
    return draft.id if draft.gate.gate is None else draft.gate.gate


def _external(draft: StateDraft) -> tuple[type[Event], ...]:
    """Return the events from outside that a state handles, its own first, then those around it."""
    found: dict[type[Event], None] = {}
    for state in draft.up():
        for transition in state.transitions:
            event = transition.event_class
            if event is not None and audience(event) != "agent":
                found.setdefault(event)
    return tuple(found)


def _vocabulary(order: dict[StateDraft, int]) -> tuple[type[Event], ...]:
    known: dict[str, type[Event]] = {}
    for draft in order:
        for transition in draft.transitions:
            event = transition.event_class
            if event is None:
                continue
            name = event_name(event)
            if known.setdefault(name, event) is not event:
                raise draft.refuse(
                    f'handles two event classes called "{name}": {known[name].__qualname__} and '
                    f"{event.__qualname__}"
                )
    return tuple(known.values())


def _state_done(draft: StateDraft) -> str:
    return f"done.state.{draft.id}"


def _actions(
    assign: Callable[[Any, Any], Any] | None, emit: Callable[[Any, Any], Any] | None
) -> tuple[Action, ...]:
    found: list[Action] = []
    if assign is not None:
        found.append(Action("assign", assign))
    if emit is not None:
        found.append(Action("emit", emit))
    return tuple(found)


def _node(draft: StateDraft, order: dict[StateDraft, int]) -> Node:
    index = order[draft]
    gate = None
    if draft.gate is not None:
        accepts = _external(draft) if draft.gate.accepts is None else draft.gate.accepts
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
                actions=_actions(one.assign, one.emit),
            )
            for one in draft.transitions
        ),
        invocations=tuple(
            Invocation(
                id=name,
                slot=task.slot,
                input=mapper,
                encode_input=task.encode_input,
                decode_output=task.decode_output,
                done=f"done.task.{draft.id}.{name}",
                failed=f"error.task.{draft.id}.{name}",
            )
            for name, task, mapper in draft.invocations
        ),
        timers=tuple(
            Timer(id=str(number), event=f"after.{draft.id}.{number}", delay=delay)
            for number, delay in enumerate(draft.timers)
        ),
        gate=gate,
        output=draft.output,
    )
