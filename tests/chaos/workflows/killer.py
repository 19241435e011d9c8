"""A task that takes its process down each time it is run."""

from __future__ import annotations

import os

from pydantic import BaseModel

from jr2 import Context, Machine


class Ctx(Context):
    """The data."""

    reason: str = ""


class Out(BaseModel):
    """The output."""

    reason: str


async def kill() -> None:
    """Take the process down."""
    os._exit(9)


m = Machine("killer", context=Ctx, output=Out, start=lambda i: Ctx())
job = m.task("kill", kill)
working = m.state("working", initial=True)
ended = m.final("ended", lambda c: Out(reason=c.reason))
working.run(job).done(to=ended).failed(to=ended, assign=lambda c, e: c.set(reason=e.reason))
machine = m.build()
