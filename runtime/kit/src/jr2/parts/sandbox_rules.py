"""What a registered Machine asks of Sandboxes, and the refusals when it cannot have it.

- A Size that leaves the Harness container too little.
- An Agent or an Effect that works in a Workspace, where none is around it.
- A body of a `workspace()` with no `workspace()` around it.
- A push of a Repo Slot that the Workspace does not have.

Source: design §3.1 (Size), spec/authoring.md §2.4, §2.10, §2.12 and §5 item 9, ADR-0060.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..config import Size
from .carried import Visit, visits
from .effects import Push, place_of
from .open_parts import customize_line, place
from .opening import is_open
from .sizes import CUSTODIAN, EFFECTOR, Slice, Split, refusal, resolve
from .workspaces import SandboxParts

if TYPE_CHECKING:
    from ..built import BuiltMachine

_IN_A_SANDBOX = ("harness", "sandbox-effector")


def size_refusals(
    workflow: str, machine: BuiltMachine[Any, Any, Any], sandbox: Size | None
) -> list[str]:
    """Return a refusal for each Size that leaves the Harness container too little.

    Args:
        workflow: the name of the Workflow.
        machine: its Machine.
        sandbox: the config's `sandbox.resources`.
    """
    found = []
    for visit in visits(machine):
        if visit.machine.sandbox is None:
            continue
        split = split_of(visit.machine.sandbox, sandbox)
        wrong = refusal(split)
        if wrong is None:
            continue
        # Of both, the seed's line sets the memory; a further refusal then names the cpu.
        field = split.short[0]
        retuned = {"resources": {"limits": {field: f"<{field}>"}}}
        advice = (
            ""
            if visit.inline
            else "; a composer retunes it where the Machine is registered: "
            f"machine = {customize_line(retuned, visit.path)}"
        )
        found.append(f'workflow "{workflow}"{place(visit.path)}: {wrong}{advice}')
    return found


def split_of(parts: SandboxParts, sandbox: Size | None) -> Split:
    """Return the Size of a Workspace, and what each container gets of it.

    Args:
        parts: the Workspace's parts.
        sandbox: the config's `sandbox.resources`.
    """
    size = resolve(parts.resources, sandbox)
    slices = [CUSTODIAN]
    if parts.user_size:
        slices.append(
            Slice(
                name="User Container",
                memory=parts.user_size.get("memory", "0"),
                cpu=parts.user_size.get("cpu", "0"),
                source="user.resources",
            )
        )
    if has_effector(parts):
        slices.append(EFFECTOR)
    return Split(memory=size["memory"], cpu=size["cpu"], slices=tuple(slices))


def has_effector(parts: SandboxParts) -> bool:
    """Say whether a Sandbox has an Effector: an Effect of what runs inside runs there."""
    return any(
        place_of(effect) == "sandbox-effector"
        for visit in visits(parts.body)
        if visit.sandbox is None
        for effect in visit.machine.effects.values()
    )


def placement_refusals(workflow: str, machine: BuiltMachine[Any, Any, Any]) -> list[str]:
    """Return a refusal for each part that has no place to run, in the order of the walk."""
    return [
        f'workflow "{workflow}"{place(visit.path)}: {problem}'
        for visit in visits(machine)
        for problem in (_outside(visit) if visit.sandbox is None else _pushes(visit, visit.sandbox))
    ]


def _outside(visit: Visit) -> Iterator[str]:
    machine = visit.machine
    if machine.inside is not None:
        yield (
            f'machine "{machine.id}" is the body of a workspace(), and no workspace() is around it '
            "— give it to workspace(…)"
        )
        return
    for slot, agent in machine.agents.items():
        if not agent.menu_only:
            yield (
                f'Agent "{slot}" of machine "{machine.id}" has workspace="{agent.workspace}", and '
                "no workspace() is around it — wrap its Machine in workspace(…), or give it "
                'workspace="none"'
            )
    for slot, effect in machine.effects.items():
        if place_of(effect) in _IN_A_SANDBOX:
            yield (
                f'Effect "{slot}" of machine "{machine.id}" runs in a Sandbox, and no workspace() '
                "is around it — wrap its Machine in workspace(…)"
            )


def _pushes(visit: Visit, sandbox: SandboxParts) -> Iterator[str]:
    if is_open(sandbox.repos):
        return
    for slot, effect in visit.machine.effects.items():
        if isinstance(effect, Push) and effect.repo not in sandbox.repos:
            yield (
                f'Effect "{slot}" of machine "{visit.machine.id}" pushes the Repo Slot '
                f'"{effect.repo}", which its Workspace does not have '
                f"(it has: {', '.join(sandbox.repos)})"
            )
