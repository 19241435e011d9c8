"""The platforms that images are needed for.

`platforms` of the config is absolute. Without it they are those of the nodes that a pod without
wishes, or a Sandbox, can be placed on, as far as the Kit releases images for them.

Source: seed 003 (Rules), spec/converge.md §7.3, ADR-0045.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jr2 import names
from jr2.errors import StepFailed

from .placement import ANYWHERE, Placement, obstacles, platform_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Platforms:
    """The platforms that images are needed for, and the lines that say so."""

    platforms: tuple[str, ...]
    lines: tuple[str, ...]


def decide(
    configured: Sequence[str] | None,
    nodes: Sequence[Mapping[str, Any]],
    sandboxes: Placement = ANYWHERE,
) -> Platforms:
    """Decide the platforms.

    Args:
        configured: `platforms` of the config; the nodes are not looked at when it is set.
        nodes: the nodes of the cluster.
        sandboxes: where the config places Sandboxes.

    Raises:
        StepFailed: none of them is a platform of the Kit, or the config names another one.
    """
    if configured is not None:
        foreign = [item for item in configured if item not in names.KIT_PLATFORMS]
        if foreign or not configured:
            raise _no_platform(f"`platforms` names {', '.join(foreign) or 'nothing'}")
        chosen = tuple(dict.fromkeys(configured))
        return Platforms(
            platforms=chosen,
            lines=(f"platforms: {', '.join(chosen)} (from `platforms` in {names.CONFIG_FILE})",),
        )
    found: dict[str, int] = {}
    for node in nodes:
        if not obstacles(node, ANYWHERE) or not obstacles(node, sandboxes):
            platform = platform_of(node)
            found[platform] = found.get(platform, 0) + 1
    usable = tuple(item for item in names.KIT_PLATFORMS if item in found)
    if not usable:
        reported = ", ".join(sorted(found)) or "none"
        raise _no_platform(f"this cluster's schedulable nodes report {reported}")
    count = sum(found[item] for item in usable)
    lines = [f"platforms: {', '.join(usable)} (from {count} schedulable node(s))"]
    lines += [
        f"platforms: skipped {item} ({number} node(s)) — the kit releases no image for it"
        for item, number in sorted(found.items())
        if item not in usable
    ]
    return Platforms(platforms=usable, lines=tuple(lines))


def _no_platform(what: str) -> StepFailed:
    return StepFailed(
        f"{what} — the kit releases images for {', '.join(names.KIT_PLATFORMS)} and nothing else, "
        "so an image built for anything else could not be joined by a Kit image in the same pod. "
        f"Set `platforms` in {names.CONFIG_FILE} (docker platform strings, e.g. "
        '"linux/arm64") to name the set to build for.'
    )
