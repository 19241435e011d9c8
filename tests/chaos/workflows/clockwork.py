"""Takes a number, hands it to a task, waits for a timer, and counts both before the next one."""

from __future__ import annotations

from datetime import timedelta

from pydantic import Field

from jr2 import Context, ExternalEvent, Machine


class Note(ExternalEvent):
    """Write a number down."""

    number: int


class Ctx(Context):
    """The data: what came in, what the task returned, and how often the timer fired."""

    numbers: list[int] = Field(default_factory=list)
    returned: list[int] = Field(default_factory=list)
    fired: int = 0


async def echo(number: int) -> int:
    """Return what was given."""
    return number


m = Machine("clockwork", context=Ctx, start=lambda i: Ctx())
job = m.task("echo", echo)
waiting = m.state("waiting", initial=True)
working, resting = m.state("working"), m.state("resting")
waiting.gate()
waiting.on(Note, to=working, assign=lambda c, e: c.set(numbers=[*c.numbers, e.number]))
working.run(job, lambda c: c.numbers[-1]).done(
    to=resting, assign=lambda c, r: c.set(returned=[*c.returned, r])
)
resting.after(timedelta(milliseconds=40), to=waiting, assign=lambda c: c.set(fired=c.fired + 1))
machine = m.build()
