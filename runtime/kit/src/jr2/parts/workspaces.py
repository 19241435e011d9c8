"""Workspaces: a Machine around a body Machine, which owns one Sandbox for as long as the body runs.

    from jr2 import AgentFault, Context, Inside, Machine, Turn, WorkspaceSpec, context, workspace
    from jr2 import AgentEvent, Size
    from pydantic import BaseModel


    class Door(BaseModel):
        ticket: str
        repo: str


    class Submit(AgentEvent):
        '''The change is committed.'''


    class Ctx(Context):
        ticket: str
        app: str


    body = Machine(
        "ticket",
        inside=Door,
        context=Ctx,
        start=lambda i: Ctx(ticket=i.door.ticket, app=str(i.workspace.repos["app"])),
    )
    coder = body.agent("coder", model="anthropic/claude-sonnet-4-6", instructions="Fix it.")
    coding, done, stuck = body.state("coding", initial=True), body.final("done"), body.final("stuck")
    coding.turn(coder, lambda c: Turn(prompt=c.ticket, cwd=c.app))
    coding.on(Submit, to=done)
    coding.on(AgentFault, to=stuck)

    machine = workspace(
        body.build(),
        door=Door,
        repos={"app": lambda door: door.repo, "docs": "https://github.com/acme/handbook.git"},
        spec=lambda door: WorkspaceSpec(branch=f"t/{door.ticket}"),
        resources=Size(memory="4Gi", cpu="2"),
    )

The body gets the door's value and the Workspace; the wrapper adds the states around it. What the
wrapper holds is read from the Machine when a Sandbox is made, and never from a snapshot, but for
what the run itself decided: the branch and the Bindings.

Source: spec/authoring.md §2.10, spec/runtime.md §5.1, ADR-0051, ADR-0060.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from ..run_data import Start
from .opening import Opening, is_open
from .repos import RepoValue, slot_problem, value_problem
from .sizes import Field, ResourcesValue, read

if TYPE_CHECKING:
    from ..built import BuiltMachine

D = TypeVar("D")
S = TypeVar("S")

Worktrees = Mapping[str, PurePosixPath]
WORK: Final = PurePosixPath("/work")
DEFAULT_GROUP: Final = 2000
CLONE: Final = "default"
"""The directory of the pod's own clone in `/work/<slot>`; no branch is called so."""


# --- what the body sees ---------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace(Generic[S]):
    """What the body of a `workspace()` gets of it.

    Args:
        repos: the Worktree of each Repo Slot, in the order of declaration; typed by `slots=`.
        branch: the branch of every Worktree.
        review: the detached review Worktree of each slot; empty without a `review_sha`.
    """

    repos: S
    branch: str
    review: Worktrees


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside(Start[D], Generic[D, S]):
    """What the `start` of a body gets: the door of its `workspace()`, and the Workspace."""

    workspace: Workspace[S]


@dataclass(frozen=True, slots=True)
class BodyOf:
    """What a body is written for."""

    door: type[Any]
    slots: tuple[str, ...]
    """The Repo Slots that it names in `slots=`; it may know more by other ways."""


def slots_of(typed: type[Any] | None) -> tuple[str, ...]:
    """Return the Repo Slots that a `TypedDict` names."""
    return () if typed is None else tuple(typed.__annotations__)


# --- what the author says -------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceSpec:
    """What one run decides about its Workspace.

    Args:
        branch: the branch that the Worktrees are on; made from the base when it does not exist.
            `None` is a branch of the run's own, `jr2/<machine id>-<run id>`; a composed Machine is
            told no run id, so there it has to be given.
        work_group: the group id of `/work`.
        review_sha: a commit that each slot also gets a detached Worktree of.
    """

    branch: str | None
    work_group: int = DEFAULT_GROUP
    review_sha: str | None = None


@dataclass(frozen=True, slots=True)
class UserContainer:
    """The container `user` of a Sandbox: an image of your own beside the Agent.

    Args:
        image: the image; jr2 injects and probes nothing, and its entry point must not end.
        resources: its own share of the Size; without one it takes from what the Harness has.
    """

    image: str
    resources: ResourcesValue | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxParts:
    """What a `workspace()` carries; `customize` makes another one."""

    body: BuiltMachine[Any, Any, Any]
    door: type[Any]
    image: str | None
    user: UserContainer | None
    user_size: Mapping[Field, str]
    """The fields that the User Container states."""
    resources: tuple[tuple[str, Mapping[Field, str]], ...]
    """Who states which field of the Size, the strongest first."""
    repos: Mapping[str, RepoValue[Any]] | Opening
    spec: Callable[[Any], WorkspaceSpec]
    effector: str | None


def context(file: str, folder: str) -> str:
    """Return the `file:` url of an image folder that lies beside a module.

    Args:
        file: the module's `__file__`.
        folder: the folder with the Dockerfile, relative to the module's own folder.
    """
    return (Path(file).resolve().parent / folder).resolve().as_uri()


# --- the rules ------------------------------------------------------------------------------------
def image_problem(what: str, image: Any) -> str | None:
    """Return why a text names no image, or `None`."""
    if not isinstance(image, str) or not image.strip():
        return f"{what}={image!r}: name an image, or leave it out"
    if image.startswith((".", "/", "~")):
        return (
            f"{what}={image!r}: a folder is named by context(__file__, {image!r}), and any other "
            "text is an image of a registry"
        )
    return None


def user_problems(user: Any) -> tuple[UserContainer | None, dict[Field, str], list[str]]:
    """Return the User Container of a `user=`, the fields that it states, and what is wrong."""
    if user is None:
        return None, {}, []
    if isinstance(user, str):
        user = UserContainer(user)
    if not isinstance(user, UserContainer):
        return None, {}, [f"user={user!r}: give an image, or a UserContainer(image, resources=…)"]
    wrong = image_problem("the image of user", user.image)
    fields, found = ({}, []) if user.resources is None else read(user.resources)
    return (
        user,
        fields,
        [
            *([] if wrong is None else [wrong]),
            *(f"in user: {problem}" for problem in found),
        ],
    )


def repos_problems(repos: Any, *, who: str) -> list[str]:
    """Return what is wrong with a whole map of Repo Slots.

    Args:
        repos: what `repos=` was given.
        who: what takes it, such as `workspace()`.
    """
    if is_open(repos):
        return []
    if not isinstance(repos, Mapping):
        return [f"repos={repos!r}: give a dict from Repo Slot to url, or OPEN"]
    if not repos:
        return [f"no Repo Slot: {who} needs at least one"]
    found = []
    for slot, value in repos.items():
        problem = slot_problem(slot)
        found.append(value_problem(slot, value) if problem is None else problem)
    return [problem for problem in found if problem is not None]
