"""Whether a pod can be placed on a node, by the rules of the Kubernetes scheduler.

Only what a node says by itself is judged: its labels, its taints and whether it is cordoned. What
is free on it changes from minute to minute, and is the scheduler's business.

Source: spec/converge.md §7.3 (Node predicate).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from jr2.config import Sandbox, Toleration

_CORDONED: Final = "node.kubernetes.io/unschedulable"
"""The taint that Kubernetes gives a cordoned node."""
_KEEPS_AWAY: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a pod asks to be placed.

    Args:
        node_selector: labels that a node must have.
        tolerations: taints that it may be placed beside.
    """

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Toleration] = ()


ANYWHERE: Final = Placement()
"""A pod that asks for nothing."""


def of_sandboxes(config: Sandbox) -> Placement:
    """Return where the config places Sandboxes."""
    return Placement(node_selector=config.node_selector, tolerations=config.tolerations)


def obstacles(node: Mapping[str, Any], placement: Placement) -> tuple[str, ...]:
    """Return what keeps a pod away from a node, in words; empty when nothing does.

    Args:
        node: the Node.
        placement: what the pod asks for.
    """
    spec = node.get("spec") or {}
    labels = (node.get("metadata") or {}).get("labels") or {}
    cordoned = bool(spec.get("unschedulable"))
    found = ["it is cordoned (kubectl uncordon)"] if cordoned else []
    for key, value in placement.node_selector.items():
        if key not in labels:
            found.append(f"it has no label {key}={value}")
        elif labels[key] != value:
            found.append(f"its label {key} is {labels[key]}, not {value}")
    found += [
        f"its taint {_spelled(taint)} is not tolerated"
        for taint in spec.get("taints") or []
        if taint.get("effect") in _KEEPS_AWAY
        and not (cordoned and taint.get("key") == _CORDONED)
        and not any(tolerates(one, taint) for one in placement.tolerations)
    ]
    return tuple(found)


def tolerates(toleration: Toleration, taint: Mapping[str, Any]) -> bool:
    """Say whether a toleration matches a taint.

    An absent effect matches every effect, and `Exists` without a key every taint; the operator
    is `Equal` when it is absent.
    """
    if toleration.effect is not None and toleration.effect != taint.get("effect"):
        return False
    if toleration.operator == "Exists":
        return not toleration.key or toleration.key == taint.get("key")
    return toleration.key == taint.get("key") and (toleration.value or "") == (
        taint.get("value") or ""
    )


def platform_of(node: Mapping[str, Any]) -> str:
    """Return a node's platform, such as `linux/amd64`."""
    info = (node.get("status") or {}).get("nodeInfo") or {}
    return f"{info.get('operatingSystem', 'linux')}/{info.get('architecture', '?')}"


def _spelled(taint: Mapping[str, Any]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"
