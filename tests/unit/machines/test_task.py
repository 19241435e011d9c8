"""The shipped Machine `task`, driven on a desk."""

from __future__ import annotations

from typing import Any

import pytest

from jr2 import AgentFault, BuiltMachine, Turn, customize
from jr2.errors import BuildRefused
from jr2.parts import shipped
from jr2.testing import Run, start
from jr2_machines import Approve, Finish, RequestChanges, TaskDoor, task

bound = customize(
    task,
    repos={"app": "https://github.com/acme/app.git", "docs": "https://github.com/acme/docs.git"},
    agents={"coder": {"model": "anthropic/claude-sonnet-4-6"}},
)


def begin(**door: Any) -> Run[Any, Any]:
    return start(bound, TaskDoor(prompt="Rename the button.", **door), run_id="r-1")


def turn(run: Run[Any, Any]) -> Turn:
    (asked,) = run.turns
    assert asked.turn is not None
    return asked.turn


def test_a_task_is_approved_and_says_on_which_branch_it_is() -> None:
    run = begin()

    first = turn(run)
    assert first.prompt == (
        "Rename the button.\n\nWork in /work/app/jr2-task-r-1, on the branch jr2/task-r-1.\n\n"
        "Beside it, to read only:\n- docs: /work/docs/jr2-task-r-1"
    )
    assert (str(first.cwd), first.continue_) == ("/work/app/jr2-task-r-1", True)
    assert run.allowed() == ["finish"]

    receipt = run.pick(Finish(summary="It is called Save now."))
    assert (receipt.moved, receipt.turn_complete) == (True, True)
    assert run.gates == ["review"]
    assert run.meta() == {
        "summary": "It is called Save now.",
        "branch": "jr2/task-r-1",
        "worktree": "/work/app/jr2-task-r-1",
    }
    run.send(Approve())
    assert run.status == "done"
    assert run.output == {"outcome": "approved", "branch": "jr2/task-r-1"}


def test_changes_are_asked_for_by_the_notes_alone_for_the_conversation_goes_on() -> None:
    run = begin(branch="fix/button")
    for number in range(3):
        run.pick(Finish(summary=f"try {number}"))
        run.send(RequestChanges(notes=f"not {number}"))
        assert turn(run).prompt == f"not {number}"
        assert turn(run).continue_
    assert run.status == "active"


def test_a_fault_waits_at_the_gate_and_the_next_prompt_tells_the_whole_task_again() -> None:
    run = begin(branch="fix/button")

    run.fail_turn("memory limit: 1.6Gi")
    assert run.meta() == {
        "reason": "memory limit: 1.6Gi",
        "branch": "fix/button",
        "worktree": "/work/app/fix-button",
    }
    run.send(RequestChanges(notes="Build one part at a time."))
    prompt = turn(run).prompt
    assert prompt.startswith("Rename the button.\n")
    assert "The last attempt ended: memory limit: 1.6Gi." in prompt
    assert prompt.endswith("Build one part at a time.")

    run.pick(Finish(summary="Done."))
    run.send(RequestChanges(notes="And the label."))
    assert turn(run).prompt == "And the label."


def test_the_dials_of_a_run_reach_its_turns() -> None:
    asked = turn(begin(model="openai/gpt-x", thinking_level="high"))
    assert (asked.model, asked.thinking_level) == ("openai/gpt-x", "high")


@pytest.mark.parametrize("parked", [False, True])
def test_a_lost_workspace_ends_the_run_wherever_it_is(parked: bool) -> None:
    run = begin(branch="b")
    if parked:
        run.pick(Finish(summary="s"))
    run.lose_workspace()
    assert run.output == {"outcome": "lost", "branch": "b"}
    assert run.turns == []


def test_a_stand_in_plays_the_coder() -> None:
    def coder(asked: Turn) -> Finish | AgentFault:
        if "Rename" in asked.prompt:
            return Finish(summary="renamed")
        return AgentFault(instance_id="c", reason="provider limit")

    run = start(bound.provide(agents={"coder": coder}), {"prompt": "Rename it."}, run_id="r-2")
    assert run.meta() == {
        "summary": "renamed",
        "branch": "jr2/task-r-2",
        "worktree": "/work/app/jr2-task-r-2",
    }
    run.send(RequestChanges(notes="No."))
    assert run.meta() == {
        "reason": "provider limit",
        "branch": "jr2/task-r-2",
        "worktree": "/work/app/jr2-task-r-2",
    }


def test_without_its_parts_bound_it_does_not_run() -> None:
    run = start(task, {"prompt": "x", "branch": "b"})
    assert run.status == "error"
    assert "leaves its Repo Slots open" in (run.fault or "")
    with pytest.raises(BuildRefused, match="coder"):
        customize(task, agents={"codr": {"model": "a/b"}})  # type: ignore[call-overload]


def test_the_slots_that_a_checker_knows_are_those_of_the_machine() -> None:
    assert task.sandbox is not None
    body = task.sandbox.body

    assert set(body.agents) == set(shipped.TaskAgents.__annotations__)
    assert not body.effects
    assert not body.actors
    assert not shipped.NoParts.__annotations__
    assert shipped.TaskMachine is BuiltMachine
