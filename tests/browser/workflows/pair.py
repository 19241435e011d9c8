"""Runs a Machine for each item that its input lists; so a picture cannot show how many there are."""

from __future__ import annotations

from pydantic import BaseModel

from jr2 import Context, ExternalEvent, Machine


class Item(BaseModel):
    """One of them."""

    key: str


class Door(BaseModel):
    """The input."""

    keys: list[str]


class Pick(ExternalEvent):
    """Take it."""


class One(Context):
    """The data of an item."""

    key: str


class Ctx(Context):
    """The data."""

    items: list[Item]


worker = Machine("worker", door=Item, context=One, start=lambda i: One(key=i.door.key))
deciding = worker.state("deciding", initial=True)
picked = worker.final("picked")
deciding.gate(meta=lambda c: {"key": c.key})
deciding.on(Pick, to=picked)

m = Machine(
    "pair",
    door=Door,
    context=Ctx,
    start=lambda i: Ctx(items=[Item(key=key) for key in i.door.keys]),
)
both = m.state("both", initial=True)
both.each(m.child("worker", worker.build()), lambda c: {item.key: item for item in c.items})
machine = m.build()
