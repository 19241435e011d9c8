"""The authoring surface: a Machine is written with state handles and event classes, then built.

A Workflow of one task:

    from jr2 import Context, Machine
    from pydantic import BaseModel, Field


    class Door(BaseModel):
        message: str = Field(default="ping", description="What to answer.")


    class Ctx(Context):
        message: str
        reply: str = ""


    class Out(BaseModel):
        reply: str


    async def respond(message: str) -> str:
        return f"pong: {message}"


    m = Machine(
        "ping",
        door=Door,
        context=Ctx,
        output=Out,
        start=lambda i: Ctx(message=i.door.message),
    )
    answer = m.task("respond", respond)
    responding = m.state("responding", initial=True)
    done = m.final("done", lambda c: Out(reply=c.reply))

    responding.run(answer, lambda c: c.message).done(to=done, assign=lambda c, r: c.set(reply=r))

    machine = m.build()

A Machine that waits at a Gate, for at most a week:

    from datetime import timedelta

    from jr2 import Context, ExternalEvent, Machine


    class Approve(ExternalEvent):
        '''Ship it.'''


    class RequestChanges(ExternalEvent):
        '''Send it back.'''

        notes: str


    class Ctx(Context):
        ticket: str
        notes: str | None = None
        run: str


    m = Machine(
        "review", door=Door, context=Ctx, start=lambda i: Ctx(ticket=i.door.ticket, run=i.run_id)
    )
    review, changes = m.state("review", initial=True), m.state("changes")
    shipped, lapsed = m.final("shipped"), m.final("lapsed")

    review.gate(meta=lambda c: {"ticket": c.ticket})
    review.on(Approve, to=shipped)
    review.on(RequestChanges, to=changes, assign=lambda c, e: c.set(notes=e.notes))
    review.after(timedelta(days=7), to=lapsed)
    changes.after(timedelta(seconds=1), to=review)

    machine = m.build()

`start` gets `i.door` (the parsed input, or the raw JSON value when there is no door) and `i.run_id`
(the id of the run). A nested state is made from its parent: `parent.state("child", initial=True)`,
and `parent.done(to=…)` is taken when a final child is entered.

Source: spec/authoring.md §2.14, design §4.2.
"""

from __future__ import annotations
