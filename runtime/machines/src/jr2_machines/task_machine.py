"""The Machine `task`: one prompt, one Workspace, and one human who says when it is done.

The coder works on the prompt and finishes; the Gate `review` waits for a person, who approves or
asks for changes, as often as it takes. A fault goes to the same Gate with its reason, and the next
prompt then tells the whole task again. A lost Workspace ends the run.

A composer binds two things, as both are Open: the Repo Slots, of which the first is where the coder
works, and the coder's model.

    from jr2 import customize
    from jr2_machines import task

    machine = customize(
        task,
        repos={"app": "https://github.com/you/app.git"},
        agents={"coder": {"model": "anthropic/claude-sonnet-4-6"}},
    )

It does not push. Source: spec/authoring.md §4.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, Literal, cast

from pydantic import BaseModel, Field

from jr2 import (
    OPEN,
    AgentEvent,
    AgentFault,
    Context,
    ExternalEvent,
    Inside,
    Machine,
    Turn,
    WorkspaceLost,
    WorkspaceSpec,
    workspace,
)

if TYPE_CHECKING:
    from jr2.parts.shipped import TaskMachine

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh"]

INSTRUCTIONS: Final = """\
You make one change to a repository.
Work only in the Worktree that the task names, and commit on its branch. You cannot push.
Make the smallest change that does what the task asks, and leave everything else as it is.
Call finish exactly once, when the work is committed.\
"""


class TaskDoor(BaseModel):
    """What starts a run."""

    prompt: str = Field(description="What is to be done.", min_length=1)
    branch: str | None = Field(
        default=None, description="The branch to work on; one of the run's own when absent."
    )
    model: str | None = Field(
        default=None, description="The coder's model for this run, as <provider>/<model>."
    )
    thinking_level: ThinkingLevel | None = Field(
        default=None, description="How hard the coder thinks in this run."
    )


class Finish(AgentEvent):
    """The work is committed on the branch."""

    summary: str = Field(description="What you did, in a few sentences.")


class Approve(ExternalEvent):
    """The work is good: the run is done."""


class RequestChanges(ExternalEvent):
    """Something is to be done differently."""

    notes: str = Field(description="What the coder has to change.", min_length=1)


class TaskOutcome(BaseModel):
    """What a run ends with."""

    outcome: Literal["approved", "lost"]
    branch: str


class TaskContext(Context):
    """The data of a run."""

    task: str
    """The whole task, as the first prompt tells it."""
    prompt: str
    """The next prompt."""
    worktree: str
    branch: str
    model: str | None = None
    thinking_level: ThinkingLevel | None = None
    summary: str | None = None
    reason: str | None = None
    """Of the last fault; `None` when the last Turn was finished."""


def _begin(start: Inside[TaskDoor, Mapping[str, PurePosixPath]]) -> TaskContext:
    door, repos = start.door, start.workspace.repos
    (_, worktree), *others = repos.items()
    lines = [door.prompt, "", f"Work in {worktree}, on the branch {start.workspace.branch}."]
    if others:
        lines += ["", "Beside it, to read only:"]
        lines += [f"- {slot}: {place}" for slot, place in others]
    whole = "\n".join(lines)
    return TaskContext(
        task=whole,
        prompt=whole,
        worktree=str(worktree),
        branch=start.workspace.branch,
        model=door.model,
        thinking_level=door.thinking_level,
    )


def _asked_again(context: TaskContext, event: RequestChanges) -> TaskContext:
    """Return the next prompt: the notes alone, where the coder still knows the task."""
    if context.reason is None:
        return context.set(prompt=event.notes)
    # The conversation is over with the fault; what hit a limit once is to know that it did.
    told = f"{context.task}\n\nThe last attempt ended: {context.reason}.\n\n{event.notes}"
    return context.set(prompt=told, reason=None)


def _meta(context: TaskContext) -> dict[str, str | None]:
    about = {"summary": context.summary} if context.reason is None else {"reason": context.reason}
    return {**about, "branch": context.branch, "worktree": context.worktree}


_body = Machine("task", inside=TaskDoor, context=TaskContext, output=TaskOutcome, start=_begin)
_coder = _body.agent(
    "coder",
    model=OPEN,
    workspace="write",
    instructions=INSTRUCTIONS,
    description="Makes the change and commits it.",
)
_working, _review = _body.state("working", initial=True), _body.state("review")
_done = _body.final("done", lambda c: TaskOutcome(outcome="approved", branch=c.branch))
_lost = _body.final("lost", lambda c: TaskOutcome(outcome="lost", branch=c.branch))

_working.turn(
    _coder,
    lambda c: Turn(
        prompt=c.prompt,
        cwd=c.worktree,
        continue_=True,
        model=c.model,
        thinking_level=c.thinking_level,
    ),
)
_working.on(Finish, to=_review, assign=lambda c, e: c.set(summary=e.summary, reason=None))
_working.on(AgentFault, to=_review, assign=lambda c, e: c.set(reason=e.reason))
_review.gate(gate="review", meta=_meta)
_review.on(Approve, to=_done)
_review.on(RequestChanges, to=_working, assign=_asked_again)
_body.on(WorkspaceLost, to=_lost)

task = cast(
    "TaskMachine[TaskDoor, Context, TaskOutcome]",
    workspace(
        _body.build(),
        door=TaskDoor,
        repos=OPEN,
        spec=lambda door: WorkspaceSpec(branch=door.branch),
    ),
)
"""The Machine; bind its Repo Slots and the coder's model with `customize`."""
