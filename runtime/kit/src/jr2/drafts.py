"""Turns what an author wrote down into a chart.

The handles of `jr2.machine` write into drafts; `compile_chart` reads them once, numbers the states
in document order (the order in which each parent made them). What is wrong with a statement is
noted in the draft, so that the build can say all of it; each text names the Machine and the state.

Source: spec/authoring.md §2.2, §2.8, §2.14.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from . import chart as charts
from .chart import (
    Action,
    Chart,
    ChildMachine,
    Gate,
    Invocation,
    InvocationKind,
    Node,
    Timer,
    Transition,
)
from .errors import BuildRefused
from .events import NAME, AgentFault, Audience, Event, audience, event_name

if TYPE_CHECKING:
    from .built import BuiltMachine

DraftKind = Literal["compound", "parallel", "final", "history"]

MOST_DEEP: Final = 100
"""How deep states may be nested: readers of JSON stop at some depth, pydantic's at 200."""


@dataclass(eq=False, kw_only=True)
class TransitionDraft:
    """A transition whose target is still a draft."""

    event: str
    event_class: type[Event] | None = None
    targets: tuple[StateDraft, ...] = ()
    internal: bool = False
    guard: charts.Guard | None = None
    actions: tuple[Action, ...] = ()


@dataclass(eq=False, kw_only=True)
class GateDraft:
    """A Gate whose accepted events may still have to be derived."""

    gate: str | Callable[[Any], str] | None
    meta: Callable[[Any], Any] | None
    accepts: tuple[type[Event], ...] | None
    named: str | None = None
    """As `Gate.named` of the chart."""


@dataclass(eq=False, kw_only=True)
class InvocationDraft:
    """What runs while a state is active; of a Turn, its picks are derived at the build."""

    id: str
    kind: InvocationKind
    slot: str
    input: Callable[[Any], Any] | None
    encode_input: charts.Encode
    decode_output: charts.Decode
    actor: str = ""
    """Of a child: its name in the run."""


@dataclass(eq=False, kw_only=True)
class StateDraft:
    """A state as it was written down; the root is the one without parent."""

    machine: str
    key: str
    parent: StateDraft | None
    kind: DraftKind = "compound"
    """A compound state without states inside is an atomic one."""
    initial: bool = False
    deep: bool = False
    default: StateDraft | None = None
    """Of history: what is entered when its parent was never left."""
    children: list[StateDraft] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    """Of the children."""
    first_initial: str | None = None
    """The key of the first child that says that it is initial."""
    transitions: list[TransitionDraft] = field(default_factory=list)
    invocations: list[InvocationDraft] = field(default_factory=list)
    timers: list[timedelta | Callable[[Any], timedelta]] = field(default_factory=list)
    entry: tuple[Action, ...] = ()
    exit: tuple[Action, ...] = ()
    gate: GateDraft | None = None
    output: Callable[[Any], Any] | None = None
    built: bool = False
    """Of the root: nothing may be added any more."""
    inline: dict[str, BuiltMachine[Any, Any, Any]] = field(default_factory=dict)
    """Of the root: the Machines that are invoked without a slot, by the slot they were given."""
    problems: list[str] = field(default_factory=list)
    """Of the root: what is wrong so far; the build says all of it."""

    @property
    def path(self) -> tuple[str, ...]:
        """The keys from below the root."""
        return tuple(one.key for one in reversed([*self.up()][:-1]))

    @property
    def id(self) -> str:
        """The path joined with dots."""
        return ".".join(self.path)

    @property
    def root(self) -> StateDraft:
        """The root that the state belongs to."""
        *_, outermost = self.up()
        return outermost

    def up(self) -> Iterator[StateDraft]:
        """Yield the state and its ancestors, innermost first."""
        one: StateDraft | None = self
        while one is not None:
            yield one
            one = one.parent

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

    def regions(self) -> list[StateDraft]:
        """Return the states inside that can be active."""
        return [child for child in self.children if child.kind != "history"]

    def is_with(self, other: StateDraft) -> bool:
        """Whether this state and another one can be active at once."""
        mine, theirs = [*self.up()], [*other.up()]
        if self in theirs or other in mine:
            return True
        return next(one for one in mine if one in theirs).kind == "parallel"

    def inline_charts(self) -> dict[str, ChildMachine]:
        """Return the Machines that are invoked without a slot, as the kernel runs them."""
        return {slot: built.as_child(inline=True) for slot, built in self.inline.items()}

    def add(self, key: str, *, kind: DraftKind, initial: bool = False) -> StateDraft:
        """Make a state inside this one; a bad or repeated name is noted, as is a second initial.

        Raises:
            BuildRefused: the Machine is built.
        """
        self.change()
        if not isinstance(key, str) or not NAME.fullmatch(key):
            self.wrong(f"has a state {key!r}: a name has letters, digits, _ and - only")
            key = str(key)
        elif key in self.keys:
            self.wrong(f'has two states "{key}"')
        if not isinstance(initial, bool):
            self.wrong(
                f'has the state "{key}" with initial={initial!r}, which is not True or False'
            )
            initial = False
        self.keys.add(key)
        if initial:
            if self.first_initial is not None:
                self.wrong(f'has two initial states, "{self.first_initial}" and "{key}"')
            else:
                self.first_initial = key
        if len(self.path) == MOST_DEEP:
            self.wrong(
                f"has states inside, and it is {MOST_DEEP} states deep itself: a snapshot of more "
                "is not read back — compose Machines, with a child for what is inside"
            )
        child = StateDraft(machine=self.machine, key=key, parent=self, kind=kind, initial=initial)
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
    children: Mapping[str, ChildMachine],
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
        children=MappingProxyType(dict(children)),
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
    return draft.gate.named or draft.id if draft.gate.gate is None else draft.gate.gate


def _number(draft: StateDraft, order: dict[StateDraft, int]) -> None:
    order[draft] = len(order)
    for child in draft.children:
        _number(child, order)


def actions(
    assign: Callable[[Any, Any], Any] | None,
    emit: Callable[[Any, Any], Any] | None,
    raise_: Callable[[Any, Any], Any] | None,
) -> tuple[Action, ...]:
    """Return what a statement asks for, in the order in which it is done."""
    found: list[Action] = []
    if assign is not None:
        found.append(Action("assign", assign))
    if emit is not None:
        found.append(Action("emit", emit))
    if raise_ is not None:
        found.append(Action("raise", raise_))
    return tuple(found)


def _initial(draft: StateDraft) -> tuple[StateDraft, ...]:
    """Return what is entered with a compound state, or by a history that remembers nothing."""
    if draft.kind == "compound":
        return tuple(child for child in draft.children if child.initial)
    if draft.kind == "history":
        assert draft.parent is not None
        if draft.default is not None:
            return (draft.default,)
        if draft.parent.kind == "parallel":
            return tuple(draft.parent.regions())
        return _initial(draft.parent)
    return ()


def _kind(draft: StateDraft) -> charts.Kind:
    return "atomic" if draft.kind == "compound" and not draft.children else draft.kind


def _node(draft: StateDraft, order: dict[StateDraft, int]) -> Node:
    index = order[draft]
    gate = None
    if draft.gate is not None:
        accepts = external(draft) if draft.gate.accepts is None else draft.gate.accepts
        gate = Gate(
            gate=draft.gate.gate,
            meta=draft.gate.meta,
            accepts=accepts,
            named=draft.gate.named,
        )
    return Node(
        index=index,
        kind=_kind(draft),
        path=draft.path,
        parent=None if draft.parent is None else order[draft.parent],
        children=tuple(order[child] for child in draft.children),
        initial=tuple(order[child] for child in _initial(draft)),
        deep=draft.deep,
        transitions=tuple(
            Transition(
                source=index,
                event=one.event,
                targets=tuple(order[target] for target in one.targets),
                internal=one.internal,
                guard=one.guard,
                actions=one.actions,
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
                actor=one.actor,
                picks=picks(draft) if one.kind == "turn" else (),
            )
            for one in draft.invocations
        ),
        timers=tuple(
            Timer(id=str(number), event=f"after.{draft.id}.{number}", delay=delay)
            for number, delay in enumerate(draft.timers)
        ),
        entry=draft.entry,
        exit=draft.exit,
        gate=gate,
        output=draft.output,
    )
