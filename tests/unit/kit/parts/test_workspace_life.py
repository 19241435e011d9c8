"""A `workspace()` as a Machine: what its run decides, what its body gets, and the order of its life.

What the Orchestrator does for a state is answered here by hand: no pod is needed for that.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

import pytest
from pydantic import BaseModel, JsonValue

import jr2.parts.workspaces
from jr2 import OPEN, Binding, BuiltMachine, Context, Inside, Machine, WorkspaceSpec, workspace
from jr2.host_wire import TaskDone
from jr2.kernel import Step
from jr2.parts.workspaces import Worktrees


class Door(BaseModel):
    ticket: str = "T-1"
    repo: str = "https://github.com/you/app.git"
    branch: str = "t/1"
    review: str | None = None
    group: int = 2000


class Ctx(Context):
    told: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies the default


class Out(BaseModel):
    where: str


def begin(i: Inside[Door, Worktrees]) -> Ctx:
    return Ctx(
        told={
            "repos": {slot: str(path) for slot, path in i.workspace.repos.items()},
            "branch": i.workspace.branch,
            "review": {slot: str(path) for slot, path in i.workspace.review.items()},
            "ticket": i.door.ticket,
            "run": i.run_id,
        }
    )


def wrapped(**more: Any) -> BuiltMachine[Door, Context, Out]:
    m = Machine("ticket", inside=Door, context=Ctx, output=Out, start=begin)
    m.state("a", initial=True).always(to=m.final("done", lambda c: Out(where=c.told["branch"])))
    told: dict[str, Any] = {
        "door": Door,
        "repos": {"app": lambda door: Binding(door.repo, "main"), "docs": "git@h:a/docs.git"},
        "spec": lambda door: WorkspaceSpec(
            branch=door.branch, review_sha=door.review, work_group=door.group
        ),
    }
    return workspace(m.build(), **(told | more))


def answer(machine: BuiltMachine[Any, Any, Any], step: Step, output: JsonValue = None) -> Step:
    (command,) = [one for one in step.commands if one.kind == "start_sandbox"]
    return machine.step(step.snapshot, TaskDone(key=command.key, output=output))


def body_context(machine: BuiltMachine[Any, Any, Any], step: Step) -> Any:
    (body,) = machine.view(step.snapshot).model_dump()["children"]
    return body["context"]


def test_a_workspace_lives_from_placing_to_teardown_and_ends_with_its_body() -> None:
    machine = wrapped()
    seen = []
    step = machine.start({}, "run-1")
    while machine.view(step.snapshot).status == "active":
        seen.append(machine.view(step.snapshot).value)
        step = answer(machine, step)

    assert seen == ["placing", "provisioning", "attaching", "teardown"]
    assert machine.view(step.snapshot).status == "done"
    assert machine.view(step.snapshot).output == {"where": "t/1"}


def test_the_orchestrator_is_asked_for_what_the_run_decided() -> None:
    step = wrapped().start({"repo": "https://github.com/me/fork", "group": 7}, "run-1")

    (command,) = step.commands
    assert command.kind == "start_sandbox"
    assert (command.slot, command.machine) == ("placing", [])
    assert command.input == {
        "branch": "t/1",
        "work_group": 7,
        "review_sha": None,
        "repos": {
            "app": {"url": "https://github.com/me/fork", "ref": "main", "per_run": True},
            "docs": {"url": "git@h:a/docs.git", "ref": None, "per_run": False},
        },
    }


def test_the_body_gets_the_door_and_the_worktrees_in_their_order() -> None:
    m = Machine("ticket", inside=Door, context=Ctx, start=begin)
    m.state("a", initial=True)
    machine = workspace(
        m.build(),
        door=Door,
        repos={"b": "https://h/b", "a": "https://h/a"},
        spec=lambda door: WorkspaceSpec(branch="x/y", review_sha="abc"),
    )
    step = machine.start({"ticket": "T-9"}, "run-1")
    for _ in range(3):
        step = answer(machine, step)

    assert body_context(machine, step) == {
        "told": {
            "repos": {"b": "/work/b/x-y", "a": "/work/a/x-y"},
            "branch": "x/y",
            "review": {"b": "/work/b/x-y-review", "a": "/work/a/x-y-review"},
            "ticket": "T-9",
            "run": "run-1",
        }
    }


def test_a_body_that_is_written_for_no_workspace_is_told_of_it_all_the_same() -> None:
    m = Machine("plain", context=Ctx, start=lambda i: Ctx(told={"ticket": i.door.ticket}))
    m.state("a", initial=True)
    machine = workspace(
        m.build(), door=Door, repos={"a": "https://h/a"}, spec=lambda _: WorkspaceSpec(branch="b")
    )
    step = machine.start({}, "run-1")
    for _ in range(3):
        step = answer(machine, step)

    assert body_context(machine, step) == {"told": {"ticket": "T-1"}}


def test_a_body_that_faults_faults_the_run_and_leaves_the_sandbox() -> None:
    def broken(i: Inside[Door, Worktrees]) -> Ctx:
        raise RuntimeError("no")

    m = Machine("ticket", inside=Door, context=Ctx, start=broken)
    m.state("a", initial=True)
    machine = workspace(
        m.build(), door=Door, repos={"a": "https://h/a"}, spec=lambda _: WorkspaceSpec(branch="b")
    )
    step = machine.start({}, "run-1")
    for _ in range(3):
        step = answer(machine, step)

    assert machine.view(step.snapshot).status == "error"
    assert "RuntimeError: no" in (machine.view(step.snapshot).fault or "")
    assert [one.kind for one in step.commands if one.kind == "start_sandbox"] == []


def test_a_slot_that_there_is_not_is_told_with_those_that_there_are() -> None:
    m = Machine(
        "ticket",
        inside=Door,
        context=Ctx,
        start=lambda i: Ctx(told={"at": str(i.workspace.repos["ap"])}),
    )
    m.state("a", initial=True)
    machine = workspace(
        m.build(),
        door=Door,
        repos={"app": "https://h/a", "docs": "https://h/d"},
        spec=lambda _: WorkspaceSpec(branch="b"),
    )
    step = machine.start({}, "run-1")
    for _ in range(3):
        step = answer(machine, step)

    assert "the Workspace has no Repo Slot 'ap' (it has: app, docs)" in (
        machine.view(step.snapshot).fault or ""
    )


SPEC = (
    "workspace spec invalid: {}; does jr2 run --input carry every field that spec= of machine "
    '"ticket" reads?'
)
REPOS = SPEC.replace("spec=", "repos=")
NAMED = 'machine "ticket" leaves {} open — bind {}: customize(<import>, repos={})'


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"spec": lambda _: "b"}, SPEC.format("spec= returned str, and not a WorkspaceSpec")),
        *(
            ({"spec": lambda _, branch=branch: WorkspaceSpec(branch=branch)}, SPEC.format(text))
            for branch, text in [
                ("", "the branch is empty"),
                (" ", "the branch is empty"),
                (3, "the branch is empty"),
                ("default", 'the branch is "default", which is the directory of the clone itself'),
                *(
                    (bad, "the branch is no name that git takes")
                    for bad in ("-x", "/x", "a b", "a..b", "x/", "x.lock", "a:b", "a\x00")
                ),
                *(
                    (bad, "the branch is no name that git takes")
                    for bad in ("HEAD", ".x", "a/.x", "a.lock/x", "a\ud800")
                ),
                *(
                    (bad, "the branch is longer than 240 bytes, which no directory is called")
                    for bad in ("x" * 241, "é" * 121)
                ),
            ]
        ),
        (
            {"spec": lambda _: WorkspaceSpec(branch="b", review_sha="")},
            SPEC.format("the review_sha is empty"),
        ),
        *(
            (
                {"spec": lambda _, group=group: WorkspaceSpec(branch="b", work_group=group)},
                SPEC.format("the work_group is no whole number from 0 to 2147483647"),
            )
            for group in (-1, True, "2000", 2**31)
        ),
        (
            {"repos": {"app": lambda _: ""}},
            REPOS.format('the Repo Slot "app" with an empty url'),
        ),
        ({"repos": OPEN}, NAMED.format("its Repo Slots", "them", '{"<slot>": "<url>"}')),
        ({"repos": {"app": OPEN}}, NAMED.format('Repo Slot "app"', "it", '{"app": "<url>"}')),
    ],
)
def test_what_a_run_decides_wrong_is_a_fault_before_any_pod(
    parts: dict[str, Any], text: str
) -> None:
    machine = wrapped(**parts)

    step = machine.start({}, "run-1")

    assert step.commands == ()
    assert machine.view(step.snapshot).status == "error"
    assert text in (machine.view(step.snapshot).fault or "")


def test_the_documented_workspace_is_built() -> None:
    text = inspect.cleandoc(jr2.parts.workspaces.__doc__ or "")
    (block,) = [
        textwrap.dedent(part)
        for part in re.findall(r"(?:^    .*\n|^\n)+", text + "\n", flags=re.MULTILINE)
        if "workspace(" in part
    ]
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(block, "example", "exec", dont_inherit=True), names)
    machine: BuiltMachine[Any, Any, Any] = names["machine"]

    step = machine.start({"ticket": "T-1", "repo": "https://h/app"}, "run-1")
    for _ in range(3):
        step = answer(machine, step)

    (turn,) = step.commands
    assert turn.kind == "start_turn"
    assert (turn.machine, turn.slot, turn.picks) == (["body"], "coder", ["submit"])
    assert turn.input == {
        "prompt": "T-1",
        "cwd": "/work/app/t-T-1",
        "continue": False,
        "model": None,
        "thinking_level": None,
    }
