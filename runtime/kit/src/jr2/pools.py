"""`pool()`: a Machine that runs one worker Machine for each item of a Source, so many at a time.

    asking ⇄ waiting → ended

It asks its Source for the next item until the Source has none or the cap is reached. Then it waits:
for a worker that settles, for the event that wakes it, or for the time after which it asks again. A
pool that ends when it is drained ends with what each worker ended with.

    machine = pool(
        worker,
        door=Door,
        source=Source(next=next_ticket, wake=TicketFiled, poll_every=timedelta(minutes=5)),
        item_id=lambda ticket: ticket.key,
        item_input=lambda ticket, door: TicketDoor(ticket=ticket.key),
        cap=lambda door: door.cap,
    )

Source: spec/authoring.md §2.11.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter
from pydantic_core import to_jsonable_python

from . import kept
from .built import BuiltMachine
from .errors import BuildRefused
from .events import Event
from .machine import Machine
from .run_data import Context, Start
from .tasks import ItemDone, ItemError

D = TypeVar("D", bound=BaseModel)
W = TypeVar("W")
T = TypeVar("T")
R = TypeVar("R")

WORKER: Final = "worker"
"""The slot of the worker; `customize` reaches the worker's own parts without it."""
SOURCE: Final = "source"
"""The Gate that wakes a pool; of a composed pool, its actor path stands before it."""


class Next(BaseModel, Generic[T]):
    """What a Source answers: the next item, and how many more there are that may not run yet.

    A pool that has nothing to run and no item that could come is drained; one whose Source still
    has open items is deadlocked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    item: T | None = None
    open: int = Field(default=0, ge=0)
    """How many items there are that are neither running nor given here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Generic[T]):
    """Where the items of a pool come from.

    Args:
        next: takes the ids of the items that run, and returns the next one, or `None`. It runs as a
            task, so at least once for each time that the pool asks.
        wake: the event that says that there may be more; it comes to the Gate `source`, with the actor
            path before it when the pool is composed.
        poll_every: how long a pool that waits waits before it asks again.
    """

    next: Callable[[tuple[str, ...]], Awaitable[Next[T] | None]]
    wake: type[Event] | None = None
    poll_every: timedelta | None = None


class PoolOutput(BaseModel, Generic[R]):
    """What a pool that ends has done."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: Literal["drained", "deadlocked"]
    items: dict[str, R]
    """What the worker of each item ended with."""
    faults: dict[str, str] = Field(default_factory=dict)
    """Why the worker of an item did not end well."""


class PoolContext(Context):
    """What a pool knows: JSON alone, for a worker that is stopped is started from it."""

    door: JsonValue = None
    cap: int = 1
    active: dict[str, JsonValue] = Field(default_factory=dict)
    """The input of each worker that runs, by item."""
    items: dict[str, JsonValue] = Field(default_factory=dict)
    faults: dict[str, str] = Field(default_factory=dict)
    open: int = 0
    stale: bool = False
    """A worker has settled, or the Source has woken, since the Source was asked."""

    def without(self, item: str) -> PoolContext:
        """Return the context without a worker that has settled."""
        active = {name: input for name, input in self.active.items() if name != item}
        return self.set(active=active, stale=True)


class _Ask(BaseModel):
    """What the Source is asked with."""

    active: tuple[str, ...]
    door: JsonValue


class _Answer(BaseModel):
    """The next item as the pool keeps it."""

    id: str | None = None
    input: JsonValue = None
    open: int = 0


def pool(
    worker: BuiltMachine[W, Any, R],
    *,
    door: type[D],
    source: Source[T],
    item_id: Callable[[T], str],
    item_input: Callable[[T, D], W],
    cap: int | Callable[[D], int] = 1,
    id: str = "pool",
    on_drained: Literal["final", "wait"] = "wait",
) -> BuiltMachine[D, PoolContext, PoolOutput[R]]:
    """Return a Machine that runs a worker for each item of a Source.

    Args:
        worker: the Machine that does the work of one item.
        door: the model of what starts the pool.
        source: where items come from.
        item_id: the name of an item: a short text without `/`, its worker's part of the actor path.
        item_input: the worker's input for an item.
        cap: how many workers run at once, or a function of the door.
        id: the pool's own name.
        on_drained: whether a pool that has nothing to do, and whose Source has nothing that could
            come, ends (`final`) or waits to be woken.

    Raises:
        BuildRefused: a part breaks its rules; the text has a line for each.
    """
    functions = {"item_id": item_id, "item_input": item_input}
    problems = list(_problems(worker, door, source, functions, cap, on_drained))
    if problems:
        raise BuildRefused(*(f'pool "{id}" {problem}' for problem in problems))
    outputs: TypeAdapter[Any] = TypeAdapter(worker.output)
    generic: Any = PoolOutput
    whole = generic[worker.output]

    def begin(first: Start[D]) -> PoolContext:
        many = cap(first.door) if callable(cap) else cap
        if not isinstance(many, int) or many < 1:
            raise ValueError(f"cap= returned {many!r}: it is a number from 1 on")
        return PoolContext(door=kept.write_model(first.door), cap=many)

    async def ask(given: _Ask) -> _Answer:
        answer = await source.next(given.active)
        if answer is None or answer.item is None:
            return _Answer(open=0 if answer is None else answer.open)
        value = item_input(answer.item, kept.read_model(door, given.door))
        plain = (
            kept.write_model(value) if isinstance(value, BaseModel) else to_jsonable_python(value)
        )
        return _Answer(id=item_id(answer.item), input=plain, open=answer.open)

    def settled(context: PoolContext, one: ItemDone[Any]) -> PoolContext:
        ended = kept.write(outputs, one.output)
        return context.without(one.item).set(items={**context.items, one.item: ended})

    def failed(context: PoolContext, one: ItemError) -> PoolContext:
        return context.without(one.item).set(faults={**context.faults, one.item: one.reason})

    def output(context: PoolContext) -> Any:
        return whole(
            status="deadlocked" if context.open else "drained",
            items={item: kept.read(outputs, one) for item, one in context.items.items()},
            faults=context.faults,
        )

    m: Any = Machine(id, door=door, context=PoolContext, output=whole, start=begin)
    task, child = m.task("next", ask), m.child(WORKER, worker)
    running = m.state("running", initial=True)
    asking, waiting = running.state("asking", initial=True), running.state("waiting")
    running.each(
        child, lambda c: {item: _given(worker, one) for item, one in c.active.items()}
    ).done(assign=settled).failed(assign=failed)
    asking.entry(assign=lambda c: c.set(stale=False))
    asking.run(task, lambda c: _Ask(active=tuple(c.active), door=c.door)).done(
        to=asking, guard=_has_room_after, assign=_took
    ).done(to=waiting, assign=_took)
    waiting.always(to=asking, guard=lambda c: c.stale and len(c.active) < c.cap)
    if on_drained == "final":
        waiting.always(to=m.final("ended", output), guard=lambda c: not c.active)
    if source.wake is not None:
        running.gate(accepts=(source.wake,))
        running._draft.gate.named = SOURCE
        running.on(source.wake, assign=lambda c, _: c.set(stale=True))
    if source.poll_every is not None:
        waiting.after(source.poll_every, guard=lambda c: len(c.active) < c.cap, to=asking)
    built: BuiltMachine[D, PoolContext, PoolOutput[R]] = m.build()
    built.wraps = WORKER
    return built


def _has_room_after(context: PoolContext, answer: _Answer) -> bool:
    """Whether one worker more may run after the one for this item."""
    is_new = answer.id is not None and answer.id not in context.active
    return is_new and len(context.active) + 1 < context.cap


def _took(context: PoolContext, answer: _Answer) -> PoolContext:
    """List the item; one that runs already is as good as none."""
    if answer.id is None or answer.id in context.active:
        return context.set(open=answer.open)
    return context.set(active={**context.active, answer.id: answer.input}, open=answer.open)


def _given(worker: BuiltMachine[Any, Any, Any], input: JsonValue) -> Any:
    return input if worker.door is None else kept.read_model(worker.door, input)


def _problems(
    worker: Any,
    door: Any,
    source: Any,
    functions: Mapping[str, object],
    cap: Any,
    on_drained: Any,
) -> Iterator[str]:
    if not isinstance(worker, BuiltMachine):
        yield f"is given the worker {worker!r}: give what .build() returned"
    elif worker.inside is not None:
        yield f'is given the body "{worker.id}" of a workspace(): give what workspace() returned'
    if not isinstance(door, type) or not issubclass(door, BaseModel):
        yield f"has the door {door!r}: a door is a pydantic model"
    for name, function in functions.items():
        if not callable(function):
            yield f"has {name}={function!r}: give a function"
    if on_drained not in ("final", "wait"):
        yield f'has on_drained={on_drained!r}, which is not one of "final", "wait"'
    if not isinstance(source, Source) or not inspect.iscoroutinefunction(source.next):
        yield "has no Source with an `async def` next="
    elif on_drained != "final" and source.wake is None and source.poll_every is None:
        yield (
            "would wait for ever once its Source has no item: give it wake= or poll_every=, or "
            'on_drained="final"'
        )
    if not callable(cap) and (not isinstance(cap, int) or cap < 1):
        yield f"has cap={cap!r}: it is a number from 1 on, or a function of the door"
