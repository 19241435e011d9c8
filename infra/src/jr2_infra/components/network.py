"""Who may connect to the pods of an Instance.

Into the pods in which an Agent works comes the Orchestrator, and nobody else. Into the Orchestrator
come the Custodians of those pods, and whom the config names. A forwarded port and the probes of the
kubelet come from the node, which no policy keeps out.

Source: spec/converge.md §5.5, design §6.3, ADR-0142.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from jr2 import names
from jr2.config import AllowFrom

from ..closed_list import NETWORK_POLICY
from .base import instance_labels, wanted

_SANDBOXES: Final = {"matchExpressions": [{"key": names.LABEL_SANDBOX_NAME, "operator": "Exists"}]}
_INSTANCE_HARNESS: Final = {"matchLabels": {names.LABEL_APP: names.INSTANCE_HARNESS}}
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
"""The label that the API server puts on each namespace."""


def policies(
    instance: str, namespace: str, *, allow_from: Sequence[AllowFrom]
) -> tuple[dict[str, Any], ...]:
    """Return the wanted NetworkPolicies; they stand before the first pod that they protect.

    Args:
        instance: the Instance.
        namespace: its namespace.
        allow_from: who may connect to the Orchestrator besides the pods that call it.
    """
    orchestrator = {names.LABEL_APP: names.ORCHESTRATOR, names.LABEL_INSTANCE: instance}
    from_orchestrator = [{"from": [{"podSelector": {"matchLabels": orchestrator}}]}]
    to_orchestrator = [
        {
            "from": [
                {"podSelector": _SANDBOXES},
                {"podSelector": _INSTANCE_HARNESS},
                *(_peer(each) for each in allow_from),
            ],
            "ports": [{"port": names.ORCHESTRATOR_PORT, "protocol": "TCP"}],
        }
    ]
    wanted_rules: tuple[tuple[str, dict[str, Any], list[dict[str, Any]]], ...] = (
        (names.SANDBOX_INGRESS, _SANDBOXES, from_orchestrator),
        (names.INSTANCE_HARNESS_INGRESS, _INSTANCE_HARNESS, from_orchestrator),
        (names.ORCHESTRATOR_INGRESS, {"matchLabels": orchestrator}, to_orchestrator),
    )
    return tuple(
        wanted(
            NETWORK_POLICY,
            name,
            namespace=namespace,
            labels=instance_labels(instance),
            spec={
                "podSelector": selector,
                "policyTypes": ["Ingress"],
                "ingress": ingress,
            },
        )
        for name, selector, ingress in wanted_rules
    )


def _peer(allowed: AllowFrom) -> dict[str, Any]:
    if allowed.cidr is not None:
        return {"ipBlock": {"cidr": allowed.cidr}}
    peer: dict[str, Any] = {}
    if allowed.namespace is not None:
        peer["namespaceSelector"] = {"matchLabels": {_NAMESPACE_NAME: allowed.namespace}}
    if allowed.pods or allowed.namespace is None:
        peer["podSelector"] = {"matchLabels": dict(allowed.pods)}
    return peer
