"""Machines as an author writes them: each line here type-checks."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import BaseModel, Field

from jr2 import AgentEvent, Context, Event, ExternalEvent, Machine, Message
from jr2.machine import BuiltMachine


class Door(BaseModel):
    ticket: str
    rounds: int = 3


class Ctx(Context):
    ticket: str
    run: str
    notes: str | None = None
    findings: list[str] = Field(default_factory=list)


class Out(BaseModel):
    outcome: Literal["shipped", "lapsed"]


class Approve(ExternalEvent):
    """Ship it."""


class RequestChanges(ExternalEvent, name="request-changes"):
    notes: str


class Finish(AgentEvent):
    summary: str


class Note(Event):
    text: str


class Shipped(Message):
    ticket: str


class Patch(BaseModel):
    files: list[str]


async def code(ticket: str) -> Patch:
    return Patch(files=[ticket])


async def tick() -> int:
    return 1


m = Machine(
    "ticket",
    door=Door,
    context=Ctx,
    output=Out,
    start=lambda i: Ctx(ticket=i.door.ticket, run=i.run_id),
)
coder, ticker = m.task("code", code), m.task("tick", tick)
working, review = m.state("working", initial=True), m.state("review")
coding, waiting = working.state("coding", initial=True), working.state("waiting")
passed = working.final("passed", lambda c: c.findings)
shipped = m.final("shipped", lambda c: Out(outcome="shipped"))

m.on(Note, assign=lambda c, e: c.set(findings=[*c.findings, e.text]))
coding.run(coder, lambda c: c.ticket).done(
    to=waiting, guard=lambda c, patch: len(patch.files) > 0
).done(to=passed, assign=lambda c, patch: c.set(findings=patch.files)).failed(
    to=review, assign=lambda c, error: c.set(notes=error.reason)
)
waiting.run(ticker).done(to=passed, assign=lambda c, n: c.set(notes=str(n + 1)))
waiting.always(to=passed, guard=lambda c: c.notes is not None)
working.done(to=review)
working.on(Finish, to=review, assign=lambda c, e: c.set(notes=e.summary))
review.gate(meta=lambda c: {"ticket": c.ticket}, accepts=(Approve, RequestChanges))
review.on(Approve, to=shipped, emit=lambda c, e: Shipped(ticket=c.ticket))
review.on(RequestChanges, to=working, assign=lambda c, e: c.set(notes=e.notes))
review.after(timedelta(days=7), to=m.final("lapsed", lambda c: Out(outcome="lapsed")))
review.after(lambda c: timedelta(seconds=len(c.findings)), assign=lambda c: c.set(notes="late"))

machine: BuiltMachine[Door, Ctx, Out] = m.build()

bare = Machine("bare")
bare.state("only", initial=True).after(timedelta(seconds=1), to=bare.final("end"))
built: BuiltMachine[object, Context, None] = bare.build()

raw = Machine("raw", context=Ctx, start=lambda i: Ctx(ticket=str(i.door), run=i.run_id))
counted = Machine("counted", door=Door, output=int)
end = counted.final("end", lambda _: 3)
