"""Mistakes with a pool: each line that ends in `# refused` has a type error, and no other has."""

from __future__ import annotations

from pydantic import BaseModel

from jr2 import Context, Machine, Next, PoolOutput, Source, pool


class Ticket(BaseModel):
    key: str


class Job(BaseModel):
    ticket: str


class Outcome(BaseModel):
    merged: bool


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
    return None if active else Next(item=Ticket(key="T-1"))


machine = pool(
    built,
    door=Door,
    source=Source(next=next_ticket),
    item_id=lambda ticket: ticket.kye,  # refused
    item_input=lambda ticket, door: Job(ticket=ticket.kye),  # refused
    cap=lambda door: door.kap,  # refused
)
pool(
    built,
    door=Door,
    source=Source(next=next_ticket),
    item_id=lambda ticket: ticket.key,
    item_input=lambda ticket, door: Job(ticket=ticket.key),
    on_drained="finale",  # refused
)
Source(next=next_ticket, wake="filed")  # refused


def first(output: PoolOutput[Outcome]) -> bool:
    return output.items["T-1"].mergd  # refused
