"""A pool over a Source: each line here type-checks."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel

from jr2 import BuiltMachine, Context, ExternalEvent, Machine, Next, PoolOutput, Source, pool


class Ticket(BaseModel):
    key: str


class Job(BaseModel):
    ticket: str


class Outcome(BaseModel):
    merged: bool


class Filed(ExternalEvent): ...


class Ctx(Context):
    ticket: str


class Door(BaseModel):
    cap: int = 2


worker = Machine(
    "worker", door=Job, context=Ctx, output=Outcome, start=lambda i: Ctx(ticket=i.door.ticket)
)
worker.state("waits", initial=True).always(to=worker.final("end", lambda c: Outcome(merged=True)))
built = worker.build()


async def next_ticket(active: tuple[str, ...]) -> Next[Ticket] | None:
    return None if active else Next(item=Ticket(key="T-1"), open=1)


machine = pool(
    built,
    door=Door,
    source=Source(next=next_ticket, wake=Filed, poll_every=timedelta(minutes=5)),
    item_id=lambda ticket: ticket.key,
    item_input=lambda ticket, door: Job(ticket=ticket.key),
    cap=lambda door: door.cap,
)


class Seen(Context):
    merged: int = 0


m = Machine("outer", context=Seen, start=lambda _: Seen())
team = m.child("team", machine)
running, over = m.state("running", initial=True), m.final("over")


def count(context: Seen, output: PoolOutput[Outcome]) -> Seen:
    return context.set(merged=sum(one.merged for one in output.items.values()))


running.invoke(team, lambda c: Door(cap=3)).done(to=over, assign=count)
outer: BuiltMachine[object, Seen, None] = m.build()
