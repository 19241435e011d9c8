"""The Workflow `ping`: it answers a message. Its name is the name of this file."""

from jr2 import Context, Machine
from pydantic import BaseModel, Field


class Door(BaseModel):
    """What starts a run: `jr2 run ping --input '{"message": "hi"}'`."""

    message: str = Field(default="ping", description="What to answer.")


class Ctx(Context):
    """What a run remembers."""

    message: str
    reply: str = ""


class Pong(BaseModel):
    """What a run ends with."""

    reply: str


async def respond(message: str) -> str:
    """Answer; a task may take its time, and it may await anything."""
    return f"pong: {message}"


m = Machine(
    "ping", door=Door, context=Ctx, output=Pong, start=lambda i: Ctx(message=i.door.message)
)
answer = m.task("respond", respond)
responding = m.state("responding", initial=True)
done = m.final("done", lambda c: Pong(reply=c.reply))

responding.run(answer, lambda c: c.message).done(to=done, assign=lambda c, r: c.set(reply=r))

# The next step: let a person decide. Define `class Approve(ExternalEvent)` (import it from jr2), go
# to a state `review = m.state("review")` in the place of `done` above, and let it wait:
#
#     review.gate(meta=lambda c: {"reply": c.reply})
#     review.on(Approve, to=done)
#
# `jr2 send <run> --gate review --event approve` then ends the run.

machine = m.build()
