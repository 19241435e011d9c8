"""Waits at a Gate; its output says which version of this file it ran under."""

from __future__ import annotations

from pydantic import BaseModel

from jr2 import Context, ExternalEvent, Machine

VERSION = 1


class Door(BaseModel):
    """The input."""

    ticket: int = 0


class Go(ExternalEvent):
    """Let it pass."""

    word: str = "yes"


class Ctx(Context):
    """The data."""

    ticket: int
    word: str = ""


class Out(BaseModel):
    """The output."""

    ticket: int
    word: str
    version: int


m = Machine(
    "review",
    door=Door,
    context=Ctx,
    output=Out,
    start=lambda i: Ctx(ticket=i.door.ticket),
)
review = m.state("review", initial=True)
passed = m.final("passed", lambda c: Out(ticket=c.ticket, word=c.word, version=VERSION))
review.gate(meta=lambda c: {"ticket": c.ticket})
review.on(Go, to=passed, assign=lambda c, e: c.set(word=e.word))
machine = m.build()
