"""The Machines that the Kit ships, bound and composed: each line here type-checks."""

from __future__ import annotations

from jr2 import BuiltMachine, Context, Machine, Size, customize
from jr2.testing import start
from jr2_machines import TaskDoor, TaskOutcome, task


class Ctx(Context):
    prompt: str = ""


bound = customize(
    task,
    repos={"app": "https://h/a.git", "docs": lambda door: f"https://h/{door.prompt}.git"},
    agents={"coder": {"model": "x/y", "thinking_level": "high"}},
    resources={"limits": {"memory": "4Gi"}},
)
again = customize(bound, agents={"coder": {"model": "x/z"}}, resources=Size(cpu="2"))
machine: BuiltMachine[TaskDoor, Context, TaskOutcome] = again
start(again, TaskDoor(prompt="x"))

m = Machine("outer", context=Ctx, start=lambda i: Ctx(prompt=i.run_id))
work = m.child("work", task)
working, done = m.state("working", initial=True), m.final("done")
working.invoke(work, lambda c: TaskDoor(prompt=c.prompt, branch="b")).done(
    to=done, assign=lambda c, r: c.set(prompt=r.branch)
)
outer = customize(
    m.build(),
    actors={"work": {"agents": {"coder": {"model": "x/y"}}, "repos": {"app": "https://h/a.git"}}},
)
