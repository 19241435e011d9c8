"""Waits at a Gate, asks a child Machine for a signature, and ends."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import BaseModel, Field

from jr2 import Context, ExternalEvent, Machine


class Size(BaseModel):
    """How large it is."""

    width: int = 1
    height: int = 1


class Door(BaseModel):
    """The input."""

    title: str = Field(description="What to ship.")
    copies: int = 1
    weight: float | None = None
    urgent: bool = False
    colour: Literal["red", "blue"] = "red"
    size: Size = Size()
    tags: list[str] = Field(default_factory=list)


class Approve(ExternalEvent):
    """Ship it."""

    by: str
    note: str | None = None


class Reject(ExternalEvent):
    """Throw it away."""


class Sign(ExternalEvent):
    """Put a name under it."""

    name: str


class SignContext(Context):
    """The data of a signature."""

    name: str = ""


class Ctx(Context):
    """The data."""

    door: Door
    by: str = ""
    note: str | None = None


signature = Machine("signature", context=SignContext, output=str, start=lambda i: SignContext())
waiting = signature.state("waiting", initial=True)
signed = signature.final("signed", lambda c: c.name)
waiting.gate()
waiting.on(Sign, to=signed, assign=lambda c, e: c.set(name=e.name))

m = Machine("approval-machine", door=Door, context=Ctx, start=lambda i: Ctx(door=i.door))
review = m.state("review", initial=True)
signing = m.state("signing")
shipped, rejected, lapsed = m.final("shipped"), m.final("rejected"), m.final("lapsed")
review.gate(meta=lambda c: {"title": c.door.title, "copies": c.door.copies})
review.on(Approve, to=signing, assign=lambda c, e: c.set(by=e.by, note=e.note))
review.on(Reject, to=rejected)
review.after(timedelta(days=7), to=lapsed)
signing.invoke(m.child("signature", signature.build())).done(
    to=shipped, assign=lambda c, name: c.set(by=f"{c.by}, {name}")
)
machine = m.build()
