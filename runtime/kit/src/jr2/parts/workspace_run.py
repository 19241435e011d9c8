"""What a run decides about its Workspace: the branch, and what each Repo Slot resolves to.

All of it is decided from the door alone, before any pod exists, and kept in the run.

Source: spec/authoring.md §2.10 (spec errors, per-run mappers, paths), spec/runtime.md §5.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Final

from pydantic import JsonValue

from ..run_data import Context, Start
from .open_parts import customize_line
from .opening import is_open
from .repos import Binding, binding_problem
from .workspaces import (
    CLONE,
    WORK,
    Inside,
    SandboxParts,
    Workspace,
    WorkspaceSpec,
    Worktrees,
)

_BRANCH: Final = re.compile(
    r"(?![-/]|HEAD$)(?!.*(\.\.|@\{|//|\.lock(/|$)))(?!(.*/)?\.)"
    r"[^\s\x00-\x1f\x7f\ud800-\udfff~^:?*\[\\]+(?<![/.])"
)
"""What git takes as the name of a branch."""
LONGEST_BRANCH: Final = 240
"""Bytes: it is the name of a directory, with `-review` after it, and of a file of git with `.lock`."""
MOST_GROUP: Final = 2**31 - 1
"""The highest group id that Kubernetes takes."""


class Resolved(Context):
    """One Repo Slot of a run."""

    url: str
    ref: str | None = None
    per_run: bool = False
    """The url came from the run, so it must pass the fence of `git.credentials`."""


class WorkspaceContext(Context):
    """The data of a `workspace()` wrapper."""

    door: JsonValue
    run_id: str
    branch: str
    work_group: int
    review_sha: str | None = None
    repos: dict[str, Resolved]
    output: JsonValue = None
    """Of the body, once it has ended."""


def begin(
    machine: str, parts: SandboxParts, start: Start[Any], door: JsonValue
) -> WorkspaceContext:
    """Return what a run decides.

    Args:
        machine: the id of the Machine, for the text of a fault.
        parts: the Workspace's parts.
        start: what the run starts with; its door is the parsed one.
        door: the door's value as JSON.

    Raises:
        ValueError: the spec or a per-run Repo does not fit, or a slot is Open.
    """
    spec = parts.spec(start.door)
    if isinstance(spec, WorkspaceSpec) and spec.branch is None and start.run_id:
        spec = replace(spec, branch=f"jr2/{machine}-{start.run_id}")
    wrong = spec_problem(spec)
    if wrong is not None:
        raise ValueError(
            f"workspace spec invalid: {wrong}; does jr2 run --input carry every field that spec= of "
            f'machine "{machine}" reads?'
        )
    assert spec.branch is not None  # it would be a problem
    return WorkspaceContext(
        door=door,
        run_id=start.run_id,
        branch=spec.branch,
        work_group=spec.work_group,
        review_sha=spec.review_sha,
        repos=_resolve(machine, parts.repos, start.door),
    )


def spec_problem(spec: Any) -> str | None:
    """Return why a run cannot have such a Workspace, or `None`."""
    if not isinstance(spec, WorkspaceSpec):
        return f"spec= returned {type(spec).__name__}, and not a WorkspaceSpec"
    if spec.branch is None:
        return "there is no branch, and a composed Machine has no run id to name one by"
    if not isinstance(spec.branch, str) or not spec.branch.strip():
        return "the branch is empty"
    if spec.branch == CLONE:
        return f'the branch is "{CLONE}", which is the directory of the clone itself'
    if not _BRANCH.fullmatch(spec.branch):
        return "the branch is no name that git takes"
    if len(spec.branch.encode()) > LONGEST_BRANCH:
        return f"the branch is longer than {LONGEST_BRANCH} bytes, which no directory is called"
    if spec.review_sha is not None and (
        not isinstance(spec.review_sha, str) or not spec.review_sha.strip()
    ):
        return "the review_sha is empty"
    group = spec.work_group
    if not isinstance(group, int) or isinstance(group, bool) or not 0 <= group <= MOST_GROUP:
        return f"the work_group is no whole number from 0 to {MOST_GROUP}"
    return None


def _resolve(machine: str, repos: Any, door: Any) -> dict[str, Resolved]:
    if is_open(repos):
        raise ValueError(
            f'machine "{machine}" leaves its Repo Slots open — bind them: '
            f"{customize_line({'repos': {'<slot>': '<url>'}})}"
        )
    return {slot: _resolve_slot(machine, slot, value, door) for slot, value in repos.items()}


def _resolve_slot(machine: str, slot: str, value: Any, door: Any) -> Resolved:
    if is_open(value):
        raise ValueError(
            f'machine "{machine}" leaves Repo Slot "{slot}" open — bind it: '
            f"{customize_line({'repos': {slot: '<url>'}})}"
        )
    per_run = callable(value)
    given = value(door) if per_run else value
    wrong = binding_problem(slot, given)
    if wrong is not None:
        raise ValueError(
            f"workspace spec invalid: {wrong}; does jr2 run --input carry every field that repos= "
            f'of machine "{machine}" reads?'
        )
    binding = Binding(given) if isinstance(given, str) else given
    return Resolved(url=binding.url, ref=binding.ref, per_run=per_run)


def inside(context: WorkspaceContext, door: Any) -> Inside[Any, Worktrees]:
    """Return what the body starts with."""
    return Inside(door=door, run_id=context.run_id, workspace=workspace_of(context))


def workspace_of(context: WorkspaceContext) -> Workspace[Worktrees]:
    """Return the Workspace as the body sees it."""
    folder = context.branch.replace("/", "-")
    return Workspace(
        repos=_places(context.repos, folder),
        branch=context.branch,
        review={} if context.review_sha is None else _places(context.repos, f"{folder}-review"),
    )


class _Places(dict[str, PurePosixPath]):
    """Worktrees by slot; a slot that there is not is told with those that there are."""

    def __missing__(self, slot: str) -> PurePosixPath:
        raise KeyError(f"the Workspace has no Repo Slot {slot!r} (it has: {', '.join(self)})")


def _places(repos: Mapping[str, Resolved], folder: str) -> _Places:
    return _Places({slot: WORK / slot / folder for slot in repos})
