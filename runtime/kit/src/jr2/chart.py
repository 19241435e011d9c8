"""The definition of a statechart: frozen, ordered, built once; the kernel only reads it.

A chart is a list of nodes in document order; node 0 is the root. Whatever refers to a node does so
by its index, so that two charts never share a part. The names of the user's functions are not part
of it, only the functions; the digest of a chart (`jr2.shape`) leaves them out.

The words of W3C SCXML hold: a transition has a source, an event, targets and a domain (the node
below which it exits and enters); document order decides between two. A chart has atomic, compound
and final nodes; `kind` is where a parallel or a history node will say what it is.

Events of the kernel have dotted names, which no event class can have: `done.state.<path>`,
`done.task.<path>.<slot>`, `error.task.<path>.<slot>`, `after.<path>.<n>`.

Source: design §4.1, spec/authoring.md §2.14 (rules for the engine).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal

from pydantic import JsonValue

from .events import Event, Message
from .run_data import Context, Start

ROOT: Final = 0
EVENTLESS: Final = ""
"""The event of a transition that is taken as soon as its guard allows it."""

Kind = Literal["atomic", "compound", "final"]
Guard = Callable[[Any, Any], bool]
"""Context and what the event carries → whether the transition is taken."""
Assign = Callable[[Any, Any], Context]
"""Context and what the event carries → the new context."""
Encode = Callable[[Any], JsonValue]
Decode = Callable[[JsonValue], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One transition; what its functions get second depends on its event.

    That is the event itself, a task's output, a `TaskError`, the output of a final state, or
    `None` for a timer and an eventless transition.
    """

    source: int
    event: str
    targets: tuple[int, ...] = ()
    """Empty: nothing is exited or entered."""
    internal: bool = False
    """A compound source is not exited when every target is below it."""
    guard: Guard | None = None
    assign: Assign | None = None
    emit: Callable[[Any, Any], Message] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """A task that runs while its state is active."""

    id: str
    """Unique within the state; part of the command's key."""
    slot: str
    input: Callable[[Any], Any] | None
    encode_input: Encode
    decode_output: Decode
    done: str
    failed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """An event that comes once when its state has been active for `delay`."""

    id: str
    event: str
    delay: timedelta | Callable[[Any], timedelta]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """An input from outside that is open while its state is active."""

    gate: str | Callable[[Any], str]
    """The address, unique among the open Gates of a run."""
    meta: Callable[[Any], Any] | None
    accepts: tuple[type[Event], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One state of the chart."""

    index: int
    kind: Kind
    path: tuple[str, ...]
    """The keys from below the root; empty for the root."""
    parent: int | None
    children: tuple[int, ...] = ()
    initial: int | None = None
    transitions: tuple[Transition, ...] = ()
    """In document order, the eventless ones among them."""
    invocations: tuple[Invocation, ...] = ()
    timers: tuple[Timer, ...] = ()
    gate: Gate | None = None
    output: Callable[[Any], Any] | None = None
    """Of a final node: what the compound state above it, or the run, ends with."""
    id: str = field(init=False, compare=False, repr=False)
    """The path joined with dots; empty for the root."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", ".".join(self.path))

    @property
    def key(self) -> str:
        """The node's own name; empty for the root."""
        return self.path[-1] if self.path else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a transition does to the configuration, as far as the chart alone decides it."""

    domain: int | None
    """Active nodes below it are exited; `None` for a transition without target."""
    enters: tuple[int, ...]
    """In entry order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A whole statechart with the types of its data."""

    id: str
    nodes: tuple[Node, ...]
    context: type[Context]
    start: Callable[[Start[Any]], Context]
    encode_output: Encode | None = None
    """How the output of a final state below the root becomes JSON; `None`: the run has none."""
    events: tuple[type[Event], ...] = ()
    """The Machine's vocabulary, in the order in which transitions name it."""
    _by_id: dict[str, int] = field(init=False, compare=False, repr=False, default_factory=dict)
    _found: dict[tuple[int, str], tuple[Transition, ...]] = field(
        init=False, compare=False, repr=False, default_factory=dict
    )
    _plans: dict[int, Plan] = field(init=False, compare=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._by_id.update((node.id, node.index) for node in self.nodes)

    def find(self, node_id: str) -> Node | None:
        """Return the node with this dotted path, or `None`."""
        index = self._by_id.get(node_id)
        return None if index is None else self.nodes[index]

    def ancestors(self, index: int) -> Iterator[int]:
        """Yield the proper ancestors of a node, innermost first; the root is the last."""
        parent = self.nodes[index].parent
        while parent is not None:
            yield parent
            parent = self.nodes[parent].parent

    def is_below(self, index: int, above: int) -> bool:
        """Whether a node is a proper descendant of another."""
        return above in self.ancestors(index)

    def candidates(self, leaf: int, event: str) -> tuple[Transition, ...]:
        """Return what an event may take at an active leaf: innermost first, then document order."""
        known = self._found.get((leaf, event))
        if known is None:
            known = tuple(
                transition
                for index in (leaf, *self.ancestors(leaf))
                for transition in self.nodes[index].transitions
                if transition.event == event
            )
            # Event names that no transition has come from outside; they are not remembered.
            if known or event == EVENTLESS:
                self._found[leaf, event] = known
        return known

    def plan(self, transition: Transition) -> Plan:
        """Return what a transition exits and enters."""
        known = self._plans.get(id(transition))
        if known is None:
            known = self._plans[id(transition)] = self._make_plan(transition)
        return known

    def initial(self) -> Plan:
        """Return what the start of a run enters."""
        return Plan(domain=ROOT, enters=tuple(self._defaults(ROOT)))

    def _make_plan(self, transition: Transition) -> Plan:
        if not transition.targets:
            return Plan(domain=None, enters=())
        source = self.nodes[transition.source]
        if (
            transition.internal
            and source.kind == "compound"
            and all(self.is_below(target, source.index) for target in transition.targets)
        ):
            domain = source.index
        else:
            # The least common proper ancestor of the source and all targets. It is found, for the
            # root is a proper ancestor of each; the root as a source is its own domain.
            domain = next(
                (
                    above
                    for above in self.ancestors(transition.source)
                    if all(self.is_below(target, above) for target in transition.targets)
                ),
                ROOT,
            )
        enters = {
            index
            for target in transition.targets
            for index in (target, *self.ancestors(target), *self._defaults(target))
            if self.is_below(index, domain)
        }
        return Plan(domain=domain, enters=tuple(sorted(enters)))

    def _defaults(self, index: int) -> Iterator[int]:
        initial = self.nodes[index].initial
        while initial is not None:
            yield initial
            initial = self.nodes[initial].initial
