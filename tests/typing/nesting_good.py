"""Machines of states inside states and of other Machines: each line here type-checks."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, Field

from jr2 import BuiltMachine, Context, Event, ExternalEvent, Machine


class Item(BaseModel):
    name: str


class Ctx(Context):
    names: list[str] = Field(default_factory=list)
    total: int = 0
    by: str | None = None


class Pause(ExternalEvent):
    why: str


class Tick(Event):
    n: int


async def count(name: str) -> int:
    return len(name)


child = Machine("child", door=Item, context=Ctx, output=int, start=lambda i: Ctx(by=i.door.name))
counter = child.task("count", count)
counting, counted = child.state("counting", initial=True), child.final("counted", lambda c: c.total)
counting.run(counter, lambda c: c.by or "").done(to=counted, assign=lambda c, n: c.set(total=n + 1))
built: BuiltMachine[Item, Ctx, int] = child.build()

m = Machine("m", context=Ctx, output=str, start=lambda i: Ctx())
both = m.parallel("both", initial=True)
left, right = both.state("left"), both.state("right", output=int)
here, there = left.state("here", initial=True), left.state("there")
working = right.state("working", initial=True)
finished = right.final("finished", lambda c: c.total)
back = both.history("back", deep=True, default=here)
paused, each, done = m.state("paused"), m.state("each"), m.final("done", lambda c: c.by or "")

one = m.child("one", built)
here.invoke(one, lambda c: Item(name=c.by or "")).done(
    to=there, assign=lambda c, n: c.set(total=n + 1)
).failed(to=paused, guard=lambda c, e: bool(e.reason))
working.invoke(built, lambda c: Item(name="x"), id="y").done(
    to=finished, assign=lambda c, n: c.set(total=c.total + n)
)
right.done(guard=lambda c, n: n > 3, assign=lambda c, n: c.set(total=n))
both.on(Pause, to=paused, assign=lambda c, e: c.set(by=e.why)).done(to=each)
paused.on(Tick, to=back, raise_=lambda c, e: Tick(n=e.n - 1), guard=lambda c, e: e.n > 0)
paused.on(Pause, to=(here, working))
paused.entry(assign=lambda c: c.set(total=0)).exit(assign=lambda c: c.set(total=c.total + 1))


def items(context: Ctx) -> Mapping[str, Item]:
    return {name: Item(name=name) for name in context.names}


each.each(one, items).done(to=done)
machine: BuiltMachine[object, Ctx, str] = m.build()
