"""A run whose task takes a while, then waits at a Gate with the count of results it got."""

import asyncio

from pydantic import BaseModel

from jr2 import Context, ExternalEvent, Machine


class Door(BaseModel):
    seconds: float = 5


class More(ExternalEvent):
    """End the run."""


class Ctx(Context):
    seconds: float
    results: int = 0


class Out(BaseModel):
    results: int


async def work(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


m = Machine("slow", door=Door, context=Ctx, output=Out, start=lambda i: Ctx(seconds=i.door.seconds))
task = m.task("work", work)
working = m.state("working", initial=True)
after = m.state("after")
done = m.final("done", lambda c: Out(results=c.results))
working.run(task, lambda c: c.seconds).done(
    to=after, assign=lambda c, r: c.set(results=c.results + 1)
)
after.gate()
after.on(More, to=done)
machine = m.build()
