"""A Workspace with Agents and Effects, as an author writes it: each line here type-checks."""

from __future__ import annotations

from datetime import timedelta
from pathlib import PurePosixPath
from typing import Literal, TypedDict

from pydantic import BaseModel

from jr2 import (
    OPEN,
    AgentEvent,
    AgentFault,
    Binding,
    BuiltMachine,
    Command,
    CommandInput,
    Context,
    Dispatch,
    DispatchInput,
    ExternalEvent,
    Http,
    HttpFile,
    HttpFileInput,
    HttpInput,
    Machine,
    Push,
    PushInput,
    Size,
    Target,
    Turn,
    UserContainer,
    WorkspaceLost,
    WorkspaceSpec,
    context,
    customize,
    workspace,
)


class TicketDoor(BaseModel):
    ticket: str
    repo: str


class Ctx(Context):
    ticket: str
    app: str
    branch: str
    notes: str | None = None


class Out(BaseModel):
    outcome: Literal["shipped", "lost"]


class Submit(AgentEvent):
    """The change is committed."""

    commit: str


class Approve(ExternalEvent): ...


body = Machine(
    "ticket",
    inside=TicketDoor,
    context=Ctx,
    output=Out,
    start=lambda i: Ctx(
        ticket=i.door.ticket,
        app=str(i.workspace.repos["app"]),
        branch=i.workspace.branch,
        notes=i.run_id,
    ),
)
coder = body.agent("coder", model=OPEN, instructions="Fix it.", thinking_level="high")
triager = body.agent("triager", model="local/qwen", workspace="none", instructions="Sort.")
tests = body.effect("tests", Command(argv=["uv", "run", "pytest"], timeout=timedelta(minutes=20)))
notify = body.effect("notify", Http(url=OPEN, secret=OPEN, headers={"x-from": "jr2"}))
upload = body.effect("upload", HttpFile(method="PUT", url="https://example.com/report"))
ship = body.effect("ship", Push(repo="app"))
deploy = body.effect(
    "deploy", Dispatch(workflow="deploy", target=Target(url="https://other", secret="OTHER_TOKEN"))
)

triaging, coding = body.state("triaging", initial=True), body.state("coding")
testing, telling = body.state("testing"), body.state("telling")
sending, pushing, deploying = body.state("sending"), body.state("pushing"), body.state("deploying")
done = body.final("done", lambda c: Out(outcome="shipped"))
lost = body.final("lost", lambda c: Out(outcome="lost"))

triaging.turn(triager, lambda c: Turn(prompt=c.ticket)).on(Submit, to=coding)
coding.turn(
    coder,
    lambda c: Turn(
        prompt=c.ticket, cwd=c.app, continue_=True, model="local/qwen", thinking_level="low"
    ),
)
coding.on(Submit, to=testing, guard=lambda c, e: len(e.commit) == 40)
coding.on(AgentFault, to=telling, assign=lambda c, e: c.set(notes=e.reason))
testing.run(tests, lambda c: CommandInput(args=(c.branch,), stdin=c.notes)).done(
    to=pushing, guard=lambda c, r: r.exit_code == 0
).done(to=coding, assign=lambda c, r: c.set(notes=r.stderr)).failed(
    to=telling, assign=lambda c, error: c.set(notes=error.reason)
)
telling.run(notify, lambda c: HttpInput(json_body={"ticket": c.ticket})).done(
    to=done, guard=lambda c, r: r.status < 400
)
sending.run(upload, lambda c: HttpFileInput(file=f"{c.app}/report.xml")).done(to=done)
pushing.run(ship).done(to=deploying, assign=lambda c, r: c.set(notes=r.after))
pushing.run(ship, lambda c: PushInput(branch=c.branch))
deploying.run(deploy, lambda c: DispatchInput(input={"ticket": c.ticket})).done(
    to=done, assign=lambda c, r: c.set(notes=r.run_id)
)
body.on(WorkspaceLost, to=lost, assign=lambda c, e: c.set(notes=e.reason))

machine = workspace(
    body.build(),
    door=TicketDoor,
    image=context(__file__, "image"),
    repos={
        "app": lambda door: Binding(door.repo, "main"),
        "docs": "https://github.com/acme/handbook.git",
        "more": Binding("https://github.com/acme/more.git"),
        "left": OPEN,
    },
    resources=Size(memory="4Gi", cpu="2"),
    user=UserContainer("ghcr.io/acme/dev:1", resources=Size(memory="1Gi")),
    spec=lambda door: WorkspaceSpec(branch=f"t/{door.ticket}", work_group=3000),
)
typed: BuiltMachine[TicketDoor, Context, Out] = machine

bound: BuiltMachine[TicketDoor, Context, Out] = customize(
    machine,
    agents={"coder": {"model": "anthropic/claude-sonnet-4-6", "thinking_level": "low"}},
    effects={
        "notify": {"url": "https://example.com/hook", "secret": "HOOK_TOKEN"},
        "tests": {"argv": ["make", "test"], "timeout": timedelta(minutes=5)},
    },
    repos={"left": "https://github.com/acme/left.git", "app": lambda door: door.repo},
    resources={"limits": {"memory": "8Gi"}},
    user="ghcr.io/acme/dev:2",
    image="ghcr.io/acme/agent:1",
)
again = customize(bound, actors={"nested": {"repos": {"app": "https://github.com/a/b"}}})
sized = customize(bound, resources=Size(cpu="3"))


class Slots(TypedDict):
    app: PurePosixPath
    docs: PurePosixPath


slotted = Machine(
    "slotted",
    inside=TicketDoor,
    slots=Slots,
    context=Ctx,
    start=lambda i: Ctx(ticket=i.door.ticket, app=str(i.workspace.repos["docs"]), branch="b"),
)
slotted.state("a", initial=True)
narrow = workspace(
    slotted.build(),
    door=TicketDoor,
    repos={"app": lambda door: door.repo, "docs": "https://github.com/acme/handbook.git"},
    spec=lambda door: WorkspaceSpec(branch=door.ticket),
)
