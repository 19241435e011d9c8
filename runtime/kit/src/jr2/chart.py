"""The definition of a statechart: frozen, ordered, built once; the kernel only reads it.

A chart is a list of nodes in document order; node 0 is the root. Whatever refers to a node does so
by its index, so that two charts never share a part, and the nodes below one are the indexes that
follow it, up to `Chart.last`. The names of the user's functions are not part of it, only the
functions; the digest of a chart (`jr2.shape`) leaves them out.

The words of W3C SCXML hold: a transition has a source, an event, targets and a domain (the node
below which it exits and enters); document order decides between two. A node is atomic, compound,
parallel, final or history. A history node is never active: it stands for the states that were
active when its parent was left.

Events of the kernel have dotted names, which no event class of an author can have:
`done.state.<path>`, `after.<path>.<n>`, and for each invocation `done.<kind>.<path>.<id>` and
`error.<kind>.<path>.<id>`. The descriptor of a transition is the name of one event, or `*` for
every event, or `<name>.*` for what begins with `<name>.`.

Source: design §4.1, spec/authoring.md §2.14 (rules for the engine).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from pydantic import JsonValue

from .events import Event, event_name
from .run_data import Context, Start

ROOT: Final = 0
EVENTLESS: Final = ""
"""The event of a transition that is taken as soon as its guard allows it."""
ANY_EVENT: Final = "*"

Kind = Literal["atomic", "compound", "parallel", "final", "history"]
Guard = Callable[[Any, Any], object]
"""Context and what the event carries → whether the transition is taken: `True` or `False`.

What user code gives back is of any type until the kernel has looked; compiled code believes what
stands here.
"""
Encode = Callable[[Any], JsonValue]
Decode = Callable[[JsonValue], Any]

InvocationKind = Literal["task", "effect", "turn", "sandbox", "child", "pool"]
"""What a state can have running:

- `task`: an async function of the Machine, run in a process of the Assembly;
- `effect`: an Effect, run by an Effector;
- `turn`: a Turn of an Agent, run by a Harness; it ends by a pick, or with the event `agent.fault`;
- `sandbox`: the Sandbox of a `workspace()`;
- `child`: another Machine, which runs inside the same snapshot;
- `pool`: one child Machine for each item that the context lists.
"""


@dataclass(frozen=True, slots=True)
class Action:
    """Something that happens with a transition, or when a state is entered or left.

    `assign` returns the new context; `emit` a `Message` for watchers; `raise` an `Event` that the
    same Machine hears before any from outside. The last two may return a tuple of them.
    """

    kind: Literal["assign", "emit", "raise"]
    run: Callable[[Any, Any], Any]
    """Takes the context and what the event carries."""


class Raised(NamedTuple):
    """An internal event by its name, for a `raise` whose event is no event class."""

    name: str
    data: Any = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transition:
    """One transition; what its functions get second depends on its event.

    That is the event itself, an invocation's output, its `TaskError`, the output of a final state,
    or `None` for a timer and an eventless transition.
    """

    source: int
    event: str
    targets: tuple[int, ...] = ()
    """Empty: nothing is exited or entered."""
    internal: bool = False
    """A compound source is not exited when every target is below it."""
    guard: Guard | None = None
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Invocation:
    """What runs while its state is active."""

    id: str
    """Unique within the state; part of the command's key."""
    kind: InvocationKind = "task"
    slot: str
    """The name of the task, Agent, Effect or child Machine in its Machine."""
    input: Callable[[Any], Any] | None
    """Makes the input from the context; of a pool, a mapping from item id to input."""
    encode_input: Encode
    decode_output: Decode
    done: str
    """The event when it has ended well; second comes the decoded output."""
    failed: str
    """The event when it has ended badly; second comes a `TaskError`, of a Turn an `AgentFault`."""
    actor: str = ""
    """Of a child: its part of the actor path, which Gates and conversations are named by."""
    picks: tuple[type[Event], ...] = ()
    """Of a Turn: the events that an Agent may pick here (the state's derived set, in order)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timer:
    """An event that comes once when its state has been active for `delay`."""

    id: str
    event: str
    delay: timedelta | Callable[[Any], object]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gate:
    """An input from outside that is open while its state is active."""

    gate: str | Callable[[Any], object] | None
    """The address, unique among the open Gates of a run; `None`: the actor path and the state."""
    meta: Callable[[Any], Any] | None
    accepts: tuple[type[Event], ...]
    named: str | None = None
    """Without an address: the name that stands in the place of the state."""
    by_name: Mapping[str, type[Event]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        known = {event_name(event): event for event in self.accepts}
        object.__setattr__(self, "by_name", known)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """One state of the chart."""

    index: int
    kind: Kind
    path: tuple[str, ...]
    """The keys from below the root; empty for the root."""
    parent: int | None
    children: tuple[int, ...] = ()
    """In document order; history nodes are among them."""
    initial: tuple[int, ...] = ()
    """Of a compound node: what is entered with it, one state but in translated charts.

    Of a history node: what is entered when its parent was never left before.
    """
    initial_actions: tuple[Action, ...] = ()
    """What happens when `initial` is entered for want of another target."""
    deep: bool = False
    """Of a history node: it remembers the innermost states, not the children of its parent."""
    transitions: tuple[Transition, ...] = ()
    """In document order, the eventless ones among them."""
    entry: tuple[Action, ...] = ()
    exit: tuple[Action, ...] = ()
    invocations: tuple[Invocation, ...] = ()
    timers: tuple[Timer, ...] = ()
    gate: Gate | None = None
    output: Callable[[Any], Any] | None = None
    """Of a final node: what the compound state above it, or the run, ends with."""
    id: str = field(init=False, repr=False)
    """The path joined with dots; empty for the root."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", ".".join(self.path))

    @property
    def key(self) -> str:
        """The node's own name; empty for the root."""
        return self.path[-1] if self.path else ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChildMachine:
    """A Machine that states of another one invoke."""

    chart: Chart
    start: Callable[[Any], Start[Any]]
    """Makes what the child's `start` gets from the input that its parent's mapper returned.

    Raises `ValueError` for one that does not fit the child's door.
    """
    inline: bool = False
    """It was given to `.invoke(…)` without a slot, so no `customize()` reaches it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chart:
    """A whole statechart with the types of its data; compared and hashed by identity."""

    id: str
    nodes: tuple[Node, ...]
    context: type[Context]
    start: Callable[[Start[Any]], object]
    encode_output: Encode | None = None
    """How the output of a final state below the root becomes JSON; `None`: the run has none."""
    decode_output: Decode | None = None
    """How a parent reads that output."""
    events: tuple[type[Event], ...] = ()
    """The Machine's vocabulary, in the order in which transitions name it."""
    children: Mapping[str, ChildMachine] = field(default_factory=lambda: MappingProxyType({}))
    """By the slot of `child` and `pool` invocations; an inline one has a slot `inline:<id>`."""
    above: tuple[tuple[int, ...], ...] = field(init=False, repr=False)
    """For each node its proper ancestors, innermost first; the root is the last."""
    last: tuple[int, ...] = field(init=False, repr=False)
    """For each node the last index below it, or its own."""
    histories: Mapping[int, tuple[int, ...]] = field(init=False, repr=False)
    """For each node that has any, its history nodes."""
    pools: tuple[int, ...] = field(init=False, repr=False)
    """The nodes with `pool` invocations."""
    is_leaf: tuple[bool, ...] = field(init=False, repr=False)
    """For each node whether it has no states inside, so that it is an innermost active one."""
    is_eventless: bool = field(init=False, repr=False)
    """Whether any transition is eventless."""
    memo: dict[Transition, Any] = field(init=False, repr=False)
    """What the kernel has worked out of each transition; filled when it is asked."""
    _by_id: dict[str, int] = field(init=False, repr=False)
    _found: dict[tuple[int, str], tuple[Transition, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        last = list(range(len(self.nodes)))
        above: list[tuple[int, ...]] = []
        for node in self.nodes:
            above.append(() if node.parent is None else (node.parent, *above[node.parent]))
            for ancestor in above[-1]:
                last[ancestor] = node.index
        histories: dict[int, tuple[int, ...]] = {}
        for node in self.nodes:
            if node.kind == "history" and node.parent is not None:
                histories[node.parent] = (*histories.get(node.parent, ()), node.index)
        pools = tuple(
            node.index
            for node in self.nodes
            if any(invocation.kind == "pool" for invocation in node.invocations)
        )
        worked_out: dict[str, Any] = {
            "above": tuple(above),
            "last": tuple(last),
            "histories": histories,
            "pools": pools,
            "is_leaf": tuple(not node.children for node in self.nodes),
            "is_eventless": any(
                transition.event == EVENTLESS
                for node in self.nodes
                for transition in node.transitions
            ),
            "memo": {},
            "_by_id": {node.id: node.index for node in self.nodes},
            "_found": {},
        }
        for name, value in worked_out.items():
            object.__setattr__(self, name, value)

    def find(self, node_id: str) -> Node | None:
        """Return the node with this dotted path, or `None`."""
        index = self._by_id.get(node_id)
        return None if index is None else self.nodes[index]

    def is_below(self, index: int, above: int) -> bool:
        """Whether a node is a proper descendant of another."""
        return above < index <= self.last[above]

    def candidates(self, leaf: int, event: str) -> tuple[Transition, ...]:
        """Return what an event may take at an active leaf: innermost first, then document order."""
        known = self._found.get((leaf, event))
        if known is None:
            known = tuple(
                transition
                for index in (leaf, *self.above[leaf])
                for transition in self.nodes[index].transitions
                if matches(transition.event, event)
            )
            # Event names that no transition has come from outside; they are not remembered.
            if known or event == EVENTLESS:
                self._found[leaf, event] = known
        return known


def matches(descriptor: str, event: str) -> bool:
    """Whether the event descriptor of a transition stands for an event."""
    if descriptor == event:
        return True
    if event == EVENTLESS:
        return False
    return descriptor == ANY_EVENT or (
        descriptor.endswith(".*") and event.startswith(descriptor[:-1])
    )
