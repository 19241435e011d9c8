"""Writes down each number that its Gate is given, in the order in which they came."""

from __future__ import annotations

from pydantic import Field

from jr2 import Context, ExternalEvent, Machine


class Note(ExternalEvent):
    """Write a number down."""

    number: int


class Ctx(Context):
    """The data."""

    numbers: list[int] = Field(default_factory=list)


m = Machine("ledger", context=Ctx, start=lambda i: Ctx())
writing = m.state("writing", initial=True)
writing.gate()
writing.on(Note, to=writing, assign=lambda c, e: c.set(numbers=[*c.numbers, e.number]))
machine = m.build()
