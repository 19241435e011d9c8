"""One task that says when it starts, and returns when a file appears.

Its state stays after the result, and would count another one.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel, Field

from jr2 import Context, Machine


class Door(BaseModel):
    """The input, of the run and of its task."""

    folder: str
    number: int


class Ctx(Context):
    """The data; each result that arrives is one more number."""

    folder: str
    number: int
    results: list[int] = Field(default_factory=list)


class Out(BaseModel):
    """The output."""

    results: list[int]


async def work(door: Door) -> int:
    """Wait for the file `go`."""
    folder = Path(door.folder)
    with (folder / f"started-{door.number}").open("a") as log:
        log.write("x")
    while not (folder / "go").exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.02)
    return door.number


m = Machine(
    "slow",
    door=Door,
    context=Ctx,
    output=Out,
    start=lambda i: Ctx(folder=i.door.folder, number=i.door.number),
)
job = m.task("work", work)
counting = m.state("counting", initial=True)
working, counted = counting.state("working", initial=True), counting.state("counted")
done = m.final("done", lambda c: Out(results=c.results))
counting.run(job, lambda c: Door(folder=c.folder, number=c.number)).done(
    assign=lambda c, r: c.set(results=[*c.results, r])
)
working.always(to=counted, guard=lambda c: bool(c.results))
counted.after(timedelta(milliseconds=300), to=done)
machine = m.build()
