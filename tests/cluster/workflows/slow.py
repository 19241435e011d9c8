"""A run whose task takes a while, then waits at a Gate with the count of results it got.

The state that runs the task stays after the result, and would count another one.
"""

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
counting = m.state("counting", initial=True)
working = counting.state("working", initial=True)
after = counting.state("after")
done = m.final("done", lambda c: Out(results=c.results))
counting.run(task, lambda c: c.seconds).done(assign=lambda c, r: c.set(results=c.results + 1))
working.always(to=after, guard=lambda c: c.results > 0)
after.gate(gate="after")
after.on(More, to=done)
machine = m.build()
