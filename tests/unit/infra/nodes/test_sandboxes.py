"""The two warnings about Sandbox nodes."""

from __future__ import annotations

import pytest

from jr2.config import Toleration
from jr2_infra.nodes import sandboxes
from jr2_infra.nodes.placement import ANYWHERE, Placement
from jr2_infra.nodes.sandboxes import SandboxSize
from tests.unit.infra.nodes.node import node

SMALL = SandboxSize(workflow="ping", memory="2Gi", cpu="1")
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def test_the_nodes_that_can_hold_one_are_named() -> None:
    found = sandboxes.judge(
        [node(name="b"), node(name="a"), node(name="c", unschedulable=True)], ANYWHERE, [SMALL]
    )
    assert found.line == "sandbox nodes: a, b"
    assert found.warnings == ()


def test_no_sandbox_node_says_of_each_node_why() -> None:
    found = sandboxes.judge(
        [
            node(name="b", taints=[TAINT], labels={"pool": "a"}),
            node(name="a", unschedulable=True, labels={"pool": "sandbox"}),
            node("s390x", name="c", labels={"pool": "sandbox"}),
        ],
        Placement(node_selector={"pool": "sandbox"}),
        [SMALL],
    )
    assert found.line is None
    assert found.warnings == (
        "warning: no Sandbox node right now — a Sandbox stays Pending until one appears:\n"
        "  a: it is cordoned (kubectl uncordon)\n"
        "  b: its label pool is a, not sandbox; its taint gpu=yes:NoSchedule is not tolerated\n"
        "  c: it is linux/s390x, and the kit releases no image for that\n"
        "  to admit a node with a taint or a label, set `sandbox` in jr2_config.py "
        "(node_selector, tolerations)",
    )


def test_a_cluster_without_nodes_and_one_that_is_cordoned_need_no_advice_on_the_config() -> None:
    assert sandboxes.judge([], ANYWHERE, [SMALL]).warnings == (
        "warning: no Sandbox node right now — a Sandbox stays Pending until one appears:\n"
        "  the cluster has no node",
    )
    (warning,) = sandboxes.judge([node(unschedulable=True)], ANYWHERE, [SMALL]).warnings
    assert "jr2_config.py" not in warning


def test_a_toleration_of_the_config_makes_a_sandbox_node() -> None:
    placed = Placement(tolerations=(Toleration(key="gpu", operator="Exists"),))
    assert sandboxes.judge([node(taints=[TAINT])], placed, [SMALL]).line == "sandbox nodes: n1"


def test_a_size_that_no_node_can_allocate_is_a_warning_for_each_workflow() -> None:
    nodes = [
        node(name="memory", allocatable={"cpu": "1", "memory": "64Gi"}),
        node(name="cpu", allocatable={"cpu": "16", "memory": "2Gi"}),
        # It is large enough, and no Sandbox node.
        node(name="both", allocatable={"cpu": "16", "memory": "64Gi"}, unschedulable=True),
    ]
    large = [
        SandboxSize(workflow="big", memory="16Gi", cpu="4"),
        SandboxSize(workflow="big", memory="16Gi", cpu="4"),
        SandboxSize(workflow="ping", memory="16Gi", cpu="4"),
    ]
    found = sandboxes.judge(nodes, ANYWHERE, [SMALL, *large])
    assert found.warnings == tuple(
        "warning: no Sandbox node right now has the allocatable for a Size of 16Gi/4 "
        f'(workflow "{workflow}") — its Sandbox stays Pending until one does'
        for workflow in ("big", "ping")
    )


@pytest.mark.parametrize(
    ("memory", "cpu", "fits"),
    [
        ("8Gi", "3920m", True),
        ("8388608Ki", "3.92", True),
        ("8.001Gi", "1", False),
        ("1Gi", "3921m", False),
        ("10G", "1", False),
    ],
)
def test_a_size_is_compared_by_value_with_what_a_node_can_allocate(
    memory: str, cpu: str, fits: bool
) -> None:
    found = sandboxes.judge(
        [node(allocatable={"cpu": "3920m", "memory": "8Gi"})],
        ANYWHERE,
        [SandboxSize(workflow="w", memory=memory, cpu=cpu)],
    )
    assert (found.warnings == ()) is fits
