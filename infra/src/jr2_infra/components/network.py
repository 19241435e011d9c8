"""Who may connect to the pods of an Instance, and the Services by which they are called.

Into the pods in which an Agent works comes the Orchestrator, and nobody else. Into the Orchestrator
come the Custodians of those pods, and whom the config names. A forwarded port and the probes of the
kubelet come from the node, which no policy keeps out.

Source: spec/converge.md §5.5, design §6.3, ADR-0142.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jr2 import names
from jr2.config import AllowFrom

from ..closed_list import NETWORK_POLICY, SERVICE
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
    to_orchestrator = {
        "from": [
            {"podSelector": _SANDBOXES},
            {"podSelector": _INSTANCE_HARNESS},
            *(_peer(each) for each in allow_from),
        ],
        "ports": [{"port": names.ORCHESTRATOR_PORT, "protocol": "TCP"}],
    }
    return (
        from_orchestrator(instance, namespace, names.SANDBOX_INGRESS, _SANDBOXES),
        from_orchestrator(instance, namespace, names.INSTANCE_HARNESS_INGRESS, _INSTANCE_HARNESS),
        _ingress(
            instance,
            namespace,
            names.ORCHESTRATOR_INGRESS,
            _orchestrator(instance),
            to_orchestrator,
        ),
    )


def from_orchestrator(
    instance: str, namespace: str, name: str, selector: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a wanted NetworkPolicy: the Orchestrator comes in, and nobody else.

    Args:
        instance: the Instance.
        namespace: its namespace.
        name: of the policy.
        selector: the pods that it protects.
    """
    admitted = {"from": [{"podSelector": _orchestrator(instance)}]}
    return _ingress(instance, namespace, name, selector, admitted)


def service(
    instance: str,
    namespace: str,
    name: str,
    *,
    port: int,
    app: str | None = None,
    **kind: Any,
) -> dict[str, Any]:
    """Return a wanted Service, by which one of our HTTP programs is called inside the cluster.

    Args:
        instance: the Instance.
        namespace: its namespace.
        name: of the Service.
        port: of the Service and of its pods.
        app: the label of its pods, when it is not the name.
        **kind: what else its spec says.
    """
    return wanted(
        SERVICE,
        name,
        namespace=namespace,
        labels=instance_labels(instance),
        spec={
            "type": "ClusterIP",
            **kind,
            "selector": {names.LABEL_APP: app or name},
            "ports": [{"name": "http", "port": port, "targetPort": port, "protocol": "TCP"}],
        },
    )


def _orchestrator(instance: str) -> dict[str, Any]:
    labels = {names.LABEL_APP: names.ORCHESTRATOR, names.LABEL_INSTANCE: instance}
    return {"matchLabels": labels}


def _ingress(
    instance: str,
    namespace: str,
    name: str,
    selector: Mapping[str, Any],
    admitted: Mapping[str, Any],
) -> dict[str, Any]:
    return wanted(
        NETWORK_POLICY,
        name,
        namespace=namespace,
        labels=instance_labels(instance),
        spec={
            "podSelector": dict(selector),
            "policyTypes": ["Ingress"],
            "ingress": [dict(admitted)],
        },
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
