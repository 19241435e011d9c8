"""Who a pod is at the API: its ServiceAccount, its Role with exact rules, and the binding of both.

Source: design §6.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jr2 import names
from jr2.rbac import Rule

from ..closed_list import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
    Kind,
)
from .base import instance_labels, shared_labels, wanted


def rights(
    instance: str, namespace: str, name: str, rules: Sequence[Rule]
) -> tuple[dict[str, Any], ...]:
    """Return ServiceAccount, Role and RoleBinding of one name: the verbs that the service uses.

    Args:
        instance: the Instance.
        namespace: its namespace.
        name: of all three.
        rules: what the service may do in the namespace.
    """
    labels = instance_labels(instance)
    return (
        _account(name, namespace, labels),
        wanted(
            ROLE,
            name,
            namespace=namespace,
            labels=labels,
            rules=[rule.as_object() for rule in rules],
        ),
        wanted(
            ROLE_BINDING,
            name,
            namespace=namespace,
            labels=labels,
            **_bound(ROLE, name, name, namespace),
        ),
    )


def cluster_rights(
    name: str, *, role: str, binding: str, rules: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """Return ServiceAccount, ClusterRole and ClusterRoleBinding of a service in `jr2-system`.

    Args:
        name: of the ServiceAccount.
        role: the name of the ClusterRole.
        binding: the name of the ClusterRoleBinding.
        rules: what the service may do in the cluster.
    """
    labels = shared_labels()
    return (
        _account(name, names.SYSTEM_NAMESPACE, labels),
        wanted(CLUSTER_ROLE, role, labels=labels, rules=[dict(rule) for rule in rules]),
        wanted(
            CLUSTER_ROLE_BINDING,
            binding,
            labels=labels,
            **_bound(CLUSTER_ROLE, role, name, names.SYSTEM_NAMESPACE),
        ),
    )


def _account(name: str, namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    # A pod that calls the API says so itself.
    return wanted(
        SERVICE_ACCOUNT,
        name,
        namespace=namespace,
        labels=labels,
        automountServiceAccountToken=False,
    )


def _bound(kind: Kind, role: str, account: str, namespace: str) -> dict[str, Any]:
    return {
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": kind.kind,
            "name": role,
        },
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
