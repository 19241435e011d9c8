"""Taints, tolerations and labels, as the scheduler reads them."""

from __future__ import annotations

from typing import Any

import pytest

from jr2.config import Toleration
from jr2_infra.nodes.placement import ANYWHERE, Placement, obstacles
from tests.unit.infra.nodes.node import node

TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
BARE = {"key": "gpu", "effect": "NoExecute"}


def tolerating(**fields: Any) -> Placement:
    return Placement(tolerations=(Toleration(**fields),))


def test_nothing_keeps_a_pod_from_a_plain_node() -> None:
    assert obstacles(node(), ANYWHERE) == ()
    assert obstacles(node(taints=[{**TAINT, "effect": "PreferNoSchedule"}]), ANYWHERE) == ()


@pytest.mark.parametrize("taint", [TAINT, BARE])
def test_a_taint_keeps_it_away_and_is_named_as_kubectl_names_it(taint: dict[str, str]) -> None:
    spelled = "gpu=yes:NoSchedule" if taint is TAINT else "gpu:NoExecute"
    assert obstacles(node(taints=[taint]), ANYWHERE) == (f"its taint {spelled} is not tolerated",)


@pytest.mark.parametrize(
    ("placement", "admitted"),
    [
        (tolerating(key="gpu", value="yes"), True),
        (tolerating(key="gpu", operator="Equal", value="yes", effect="NoSchedule"), True),
        (tolerating(key="gpu", operator="Exists"), True),
        (tolerating(operator="Exists"), True),
        (tolerating(key="", operator="Exists"), True),
        (tolerating(operator="Exists", effect="NoSchedule"), True),
        (tolerating(operator="Exists", effect="NoExecute"), False),
        (tolerating(key="gpu", value="no"), False),
        (tolerating(key="gpu"), False),
        (tolerating(key="cpu", value="yes"), False),
        (tolerating(key="gpu", value="yes", effect="NoExecute"), False),
    ],
)
def test_a_toleration_admits_what_kubernetes_lets_it_admit(
    placement: Placement, admitted: bool
) -> None:
    assert (obstacles(node(taints=[TAINT]), placement) == ()) is admitted


def test_each_taint_needs_a_toleration() -> None:
    found = obstacles(
        node(taints=[TAINT, {"key": "x", "effect": "NoSchedule"}]),
        tolerating(key="gpu", value="yes"),
    )
    assert found == ("its taint x:NoSchedule is not tolerated",)


def test_a_label_that_is_missing_or_different_is_named() -> None:
    wanted = Placement(node_selector={"pool": "sandbox", "zone": "a"})
    assert obstacles(node(labels={"zone": "b"}), wanted) == (
        "it has no label pool=sandbox",
        "its label zone is b, not a",
    )
    assert obstacles(node(labels={"zone": "a", "pool": "sandbox"}), wanted) == ()


def test_a_cordoned_node_is_named_once() -> None:
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    found = obstacles(node(unschedulable=True, taints=[cordon]), ANYWHERE)
    assert found == ("it is cordoned (kubectl uncordon)",)
