"""Which nodes can hold a Sandbox, and which Sizes they have room for.

Warnings, no refusals: a node may appear later, and an autoscaler makes one when a pod waits for it.
A Size is compared with what a node can allocate in all, not with what is free.

Source: seed 003 (Rules), spec/converge.md §4 step 8 and §7.3, ADR-0060.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jr2 import names, quantity

from .placement import Placement, obstacles, platform_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSize:
    """The Size of one Workspace.

    Args:
        workflow: the Workflow that composes it.
        memory: of the whole Sandbox, as it was written.
        cpu: of the whole Sandbox, as it was written.
    """

    workflow: str
    memory: str
    cpu: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxNodes:
    """What is said about the nodes that can hold a Sandbox.

    Args:
        line: names them; `None` when there is none.
        warnings: what no node can hold, each with its `warning: `.
    """

    line: str | None
    warnings: tuple[str, ...]


def judge(
    nodes: Sequence[Mapping[str, Any]], placement: Placement, sizes: Sequence[SandboxSize]
) -> SandboxNodes:
    """Judge the nodes of a cluster.

    Args:
        nodes: all of them.
        placement: where the config places Sandboxes.
        sizes: the Size of each Workspace.
    """
    why = {str(node["metadata"]["name"]): _reasons(node, placement) for node in nodes}
    fit = [node for node in nodes if not why[str(node["metadata"]["name"])]]
    if not fit:
        return SandboxNodes(line=None, warnings=(_none(why),))
    listed = ", ".join(sorted(str(node["metadata"]["name"]) for node in fit))
    return SandboxNodes(
        line=f"sandbox nodes: {listed}",
        warnings=tuple(
            f"warning: no Sandbox node right now has the allocatable for a Size of "
            f'{size.memory}/{size.cpu} (workflow "{size.workflow}") — its Sandbox stays Pending '
            "until one does"
            for size in dict.fromkeys(sizes)
            if not any(_has_room(node, size) for node in fit)
        ),
    )


def _reasons(node: Mapping[str, Any], placement: Placement) -> tuple[str, ...]:
    found = obstacles(node, placement)
    platform = platform_of(node)
    if platform not in names.KIT_PLATFORMS:
        found = (*found, f"it is {platform}, and the kit releases no image for that")
    return found


def _none(why: Mapping[str, Sequence[str]]) -> str:
    lines = ["warning: no Sandbox node right now — a Sandbox stays Pending until one appears:"]
    lines += [f"  {name}: {'; '.join(reasons)}" for name, reasons in sorted(why.items())]
    if not why:
        lines.append("  the cluster has no node")
    elif any("taint" in reason or "label" in reason for item in why.values() for reason in item):
        lines.append(
            "  to admit a node with a taint or a label, set `sandbox` in "
            f"{names.CONFIG_FILE} (node_selector, tolerations)"
        )
    return "\n".join(lines)


def _has_room(node: Mapping[str, Any], size: SandboxSize) -> bool:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return all(
        name in allocatable and quantity.parse(str(allocatable[name])) >= quantity.parse(wanted)
        for name, wanted in (("memory", size.memory), ("cpu", size.cpu))
    )
