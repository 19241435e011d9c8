"""Who a pod is at the API: its ServiceAccount, its Role with exact rules, and the binding of both.

Source: design §6.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jr2.rbac import Rule

from ..closed_list import ROLE, ROLE_BINDING, SERVICE_ACCOUNT
from .base import instance_labels, wanted


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
        wanted(
            SERVICE_ACCOUNT,
            name,
            namespace=namespace,
            labels=labels,
            automountServiceAccountToken=False,
        ),
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
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            subjects=[{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        ),
    )
