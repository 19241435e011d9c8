"""A task that returns at once."""

from __future__ import annotations

from pydantic import BaseModel

from jr2 import Context, Machine


class Ctx(Context):
    """The data."""

    reply: str = ""


class Out(BaseModel):
    """The output."""

    reply: str


async def respond() -> str:
    """Answer."""
    return "pong"


m = Machine("ping", context=Ctx, output=Out, start=lambda i: Ctx())
job = m.task("respond", respond)
responding = m.state("responding", initial=True)
done = m.final("done", lambda c: Out(reply=c.reply))
responding.run(job).done(to=done, assign=lambda c, r: c.set(reply=r))
machine = m.build()
