"""Mistakes of authors: each line that ends in `# refused` has a type error, and no other has."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel

from jr2 import Context, ExternalEvent, Machine


class Door(BaseModel):
    ticket: str


class Ctx(Context):
    ticket: str
    notes: str | None = None


class Other(Context):
    n: int = 0


class Out(BaseModel):
    outcome: str


class RequestChanges(ExternalEvent):
    notes: str


class Plain(BaseModel):
    notes: str


async def code(ticket: str) -> int:
    return len(ticket)


async def tick() -> int:
    return 1


def sync(ticket: str) -> int:
    return len(ticket)


m = Machine(
    "ticket",
    door=Door,
    context=Ctx,
    output=Out,
    start=lambda i: Ctx(ticket=i.door.tikcet),  # refused
)
Machine("no-start", context=Ctx)  # refused
Machine("no-context", start=lambda i: Ctx(ticket=i.run_id))  # refused
Machine("door", door=Door, context=Ctx, start=lambda i: Ctx(ticket=i.runid))  # refused
coder = m.task("code", code)
ticker = m.task("tick", tick)
m.task("sync", sync)  # refused
working, review = m.state("working", initial=True), m.state("review")
done = m.final("done", lambda c: Out(outcome=c.tikcet))  # refused
wrong = m.final("wrong", lambda c: 3)  # refused

working.run(coder, lambda c: c.tikcet)  # refused
working.run(coder)  # refused
working.run(coder, lambda c: 3)  # refused
working.run(ticker, lambda c: 3)  # refused
working.run(code, lambda c: c.ticket)  # refused
ran = working.run(coder, lambda c: c.ticket)
ran.done(to=done, assign=lambda c, r: c.set(notes=r.text))  # refused
ran.failed(to=done, guard=lambda c, e: e.raeson == "")  # refused
review.on(RequestChanges, to=done, assign=lambda c, e: c.set(notes=e.note))  # refused
review.on(RequestChanges, to=done, guard=lambda c, e: e.notes)  # refused
review.on(RequestChanges, to=done, assign=lambda c, e: e)  # refused
review.on(Plain, to=done)  # refused
review.on(RequestChanges, to="done")  # refused
review.on(RequestChanges, go=done)  # refused
review.after(7, to=done)  # refused
review.after(timedelta(days=7), to=done, guard=lambda c: c.nots is None)  # refused
review.gate(meta=lambda c: {"ticket": c.tikcet})  # refused
review.always(to=done, guard=lambda c: c.nots is None)  # refused
done.on(RequestChanges, to=review)  # refused
m.reveiw()  # refused

other = Machine("other", context=Other, start=lambda _: Other())
review.on(RequestChanges, to=other.state("there"))  # refused
