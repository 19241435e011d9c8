"""Does on request what user code must not do."""

from __future__ import annotations

import os

from jr2 import Context, ExternalEvent, Machine


class Hang(ExternalEvent):
    """Never answer."""


class Die(ExternalEvent):
    """End the process."""


class Grow(ExternalEvent):
    """Keep more than a run may hold."""


class Leave(ExternalEvent):
    """Do nothing wrong."""


class Ctx(Context):
    """The data."""

    text: str = ""


def hang(c: Ctx, e: Hang) -> Ctx:
    """Never return."""
    while True:
        pass


def die(c: Ctx, e: Die) -> Ctx:
    """Take the process down."""
    os._exit(7)


m = Machine("evil", context=Ctx, start=lambda i: Ctx())
waiting = m.state("waiting", initial=True)
left = m.final("left")
waiting.gate()
waiting.on(Hang, to=left, assign=hang)
waiting.on(Die, to=left, assign=die)
waiting.on(Grow, to=waiting, assign=lambda c, e: c.set(text="x" * 2_000_000))
waiting.on(Leave, to=left)
machine = m.build()
