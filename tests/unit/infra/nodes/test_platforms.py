"""The platforms, and the error of a platform that the Kit has no images for."""

from __future__ import annotations

from typing import Any

import pytest

from jr2.config import Toleration
from jr2.errors import Jr2Error
from jr2_infra.nodes import platforms
from jr2_infra.nodes.placement import Placement
from tests.unit.infra.nodes.node import node


def test_the_nodes_give_the_platforms() -> None:
    found = platforms.decide(
        None,
        [
            node(),
            node("arm64", unschedulable=True),
            node("arm64", taints=[{"effect": "NoSchedule", "key": "k"}]),
            node("amd64", taints=[{"effect": "PreferNoSchedule", "key": "k"}]),
            node("s390x"),
        ],
    )
    assert found.platforms == ("linux/amd64",)
    assert found.lines == (
        "platforms: linux/amd64 (from 2 schedulable node(s))",
        "platforms: skipped linux/s390x (1 node(s)) — the kit releases no image for it",
    )


def test_nodes_that_only_a_sandbox_is_placed_on_count_too() -> None:
    tainted = node("arm64", taints=[{"effect": "NoSchedule", "key": "sandbox"}])
    labelled = node("amd64", labels={"pool": "sandbox"})
    placed = Placement(
        node_selector={}, tolerations=(Toleration(key="sandbox", operator="Exists"),)
    )
    assert platforms.decide(None, [node(), tainted], placed).platforms == (
        "linux/amd64",
        "linux/arm64",
    )
    # A selector narrows Sandboxes alone: the other pods still go anywhere.
    narrowed = Placement(node_selector={"pool": "sandbox"})
    assert platforms.decide(None, [node("arm64"), labelled], narrowed).platforms == (
        "linux/amd64",
        "linux/arm64",
    )


def test_configured_platforms_are_absolute() -> None:
    found = platforms.decide(("linux/arm64",), [])
    assert found.lines == ("platforms: linux/arm64 (from `platforms` in jr2_config.py)",)


@pytest.mark.parametrize(
    ("configured", "nodes", "what"),
    [
        (("linux/s390x",), [], "`platforms` names linux/s390x"),
        ((), [], "`platforms` names nothing"),
        (None, [node("s390x")], "this cluster's schedulable nodes report linux/s390x"),
        (None, [], "this cluster's schedulable nodes report none"),
    ],
)
def test_a_platform_without_kit_images_is_an_error(
    configured: tuple[str, ...] | None, nodes: list[dict[str, Any]], what: str
) -> None:
    with pytest.raises(Jr2Error) as caught:
        platforms.decide(configured, nodes)
    assert caught.value.printed == (
        f"error: {what} — the kit releases images for linux/amd64, linux/arm64 and nothing else, "
        "so an image built for anything else could not be joined by a Kit image in the same pod. "
        'Set `platforms` in jr2_config.py (docker platform strings, e.g. "linux/arm64") to name '
        "the set to build for."
    )
