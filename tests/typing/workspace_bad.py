"""Mistakes of authors of Workspaces: each line that ends in `# refused` has a type error, and no
other has.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TypedDict

from pydantic import BaseModel

from jr2 import (
    OPEN,
    AgentEvent,
    AgentFault,
    Command,
    CommandInput,
    Context,
    Dispatch,
    Http,
    HttpFile,
    HttpInput,
    Machine,
    Push,
    Size,
    Turn,
    WorkspaceSpec,
    customize,
    workspace,
)


class TicketDoor(BaseModel):
    ticket: str
    repo: str


class Ctx(Context):
    ticket: str
    notes: str | None = None


class Submit(AgentEvent):
    commit: str


body = Machine("b", inside=TicketDoor, context=Ctx, start=lambda i: Ctx(ticket=i.door.ticket))
Machine("i", inside=TicketDoor, context=Ctx, start=lambda i: Ctx(ticket=i.door.tikcet))  # refused
Machine("j", inside=TicketDoor, context=Ctx, start=lambda i: Ctx(ticket=i.workspc.repos))  # refused
coder = body.agent("coder", model=OPEN, instructions="Fix it.")
body.agent("a", model="x/y", instruction="x")  # refused
body.agent("b", model="x/y", instructions="x", workspace="all")  # refused
body.agent("c", model="x/y", instructions="x", thinking_level="huge")  # refused
body.agent("d", model=3, instructions="x")  # refused
tests = body.effect("tests", Command(argv=["make"]))
notify = body.effect("notify", Http(url=OPEN))
upload = body.effect("upload", HttpFile(url=OPEN))
body.effect("e", Command(argv=3))  # refused
body.effect("f", Http(ulr="https://x"))  # refused
body.effect("g", Push(repo=OPEN))  # refused
body.effect("h", Dispatch(workflow=OPEN))  # refused
coding, done = body.state("coding", initial=True), body.final("done")

coding.turn(coder, lambda c: Turn(prompt=c.tikcet))  # refused
coding.turn(coder, lambda c: Turn(promt=c.ticket))  # refused
coding.turn(coder, lambda c: Turn(prompt=c.ticket, session="x"))  # refused
coding.turn(coder, lambda c: Turn(prompt=c.ticket, thinking_level="huge"))  # refused
coding.turn(coder, lambda c: c.ticket)  # refused
coding.turn("coder", lambda c: Turn(prompt=c.ticket))  # refused
coding.turn(tests, lambda c: Turn(prompt=c.ticket))  # refused
coding.on(AgentFault, to=done, assign=lambda c, e: c.set(notes=e.raeson))  # refused
coding.on(Submit, to="done")  # refused
coding.run(tests, lambda c: CommandInput(arg=("x",)))  # refused
coding.run(tests, lambda c: HttpInput())  # refused
coding.run(tests).done(to=done, guard=lambda c, r: r.status == 0)  # refused
coding.run(notify).done(to=done, guard=lambda c, r: r.exit_code == 0)  # refused
coding.run(coder)  # refused

built = body.build()
machine = workspace(
    built,
    door=TicketDoor,
    repos={"app": lambda door: door.repo},
    spec=lambda door: WorkspaceSpec(branch=door.ticket),
)
workspace(
    built,
    door=TicketDoor,
    repos={"app": lambda door: door.rpo},  # refused
    spec=lambda door: WorkspaceSpec(branch=door.ticket),
)
workspace(
    built,
    door=TicketDoor,
    repos={"app": "https://github.com/a/b"},
    spec=lambda door: WorkspaceSpec(branch=door.tikcet),  # refused
)
workspace(
    built,
    door=TicketDoor,
    repos={"app": "https://github.com/a/b"},
    spec=lambda door: WorkspaceSpec(brnch=door.ticket),  # refused
)
customize(machine, agent={"coder": {"model": "x/y"}})  # refused
customize(machine, agents={"coder": {"modle": "x/y"}})  # refused
customize(machine, agents={"coder": {"workspace": "all"}})  # refused
customize(machine, effects={"notify": {"ulr": "https://x"}})  # refused
customize(machine, actors={"nested": {"repo": {"app": "https://x"}}})  # refused
customize(machine, resources={"limit": {"memory": "1Gi"}})  # refused
customize(machine, resources=Size(memroy="1Gi"))  # refused
customize(machine, repos={"app": lambda door: door.rpo})  # refused


class Slots(TypedDict):
    app: PurePosixPath
    docs: PurePosixPath


Machine(
    "misspelt",
    inside=TicketDoor,
    slots=Slots,
    context=Ctx,
    start=lambda i: Ctx(ticket=str(i.workspace.repos["dcos"])),  # refused
)
