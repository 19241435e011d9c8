"""A task that blocks the event loop of its process for good."""

from __future__ import annotations

import time
from pathlib import Path

from pydantic import BaseModel

from jr2 import Context, Machine


class Door(BaseModel):
    """The input."""

    marker: str


class Ctx(Context):
    """The data."""

    marker: str


def say(marker: str) -> None:
    """Add a letter to the file."""
    with Path(marker).open("a") as log:
        log.write("x")


async def block(marker: str) -> None:
    """Say that it runs, and never give the loop back."""
    say(marker)
    while True:
        time.sleep(1)  # noqa: ASYNC251 - this is what a task must not do


m = Machine("blocker", door=Door, context=Ctx, start=lambda i: Ctx(marker=i.door.marker))
job = m.task("block", block)
working = m.state("working", initial=True)
ended = m.final("ended")
working.run(job, lambda c: c.marker).done(to=ended)
machine = m.build()
