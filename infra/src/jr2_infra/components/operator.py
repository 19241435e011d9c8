"""The operator of a cluster: its namespace, its CRDs, its rights, its pod and the priority classes.

All of it is shared by the Instances of the cluster. A converge leaves it out when a newer Kit put
it there, and a plain `pulumi destroy` of one Instance leaves it standing.

Source: spec/converge.md §5.11 and §6.2, design §5.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jr2 import names

from ..closed_list import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    DEPLOYMENT,
    NAMESPACE,
    PRIORITY_CLASS,
    SERVICE_ACCOUNT,
)
from .base import PULUMI_ANNOTATIONS, RESTRICTED, TMP_PATH, shared_labels, wanted

CONTAINER = "manager"


def system_namespace() -> dict[str, Any]:
    """Return the wanted Namespace `jr2-system`."""
    return wanted(NAMESPACE, names.SYSTEM_NAMESPACE, labels=shared_labels())


def priority_classes(*, control: bool, sandbox: bool) -> tuple[dict[str, Any], ...]:
    """Return the wanted PriorityClasses.

    Args:
        control: make `jr2-control`; false when the config names another class for control pods.
        sandbox: make `jr2-sandbox`, likewise.
    """
    made: list[dict[str, Any]] = []
    if control:
        made.append(
            wanted(
                PRIORITY_CLASS,
                names.PRIORITY_CONTROL,
                labels=shared_labels(),
                value=names.PRIORITY_CONTROL_VALUE,
                preemptionPolicy="PreemptLowerPriority",
                description="jr2: the operator, Orchestrators and Repo caches",
            )
        )
    if sandbox:
        made.append(
            wanted(
                PRIORITY_CLASS,
                names.PRIORITY_SANDBOX,
                labels=shared_labels(),
                value=names.PRIORITY_SANDBOX_VALUE,
                preemptionPolicy="Never",
                description="jr2: Sandboxes; they never push another pod away",
            )
        )
    return tuple(made)


def custom_resource(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a wanted CRD from what its file says."""
    metadata = definition["metadata"]
    return {
        **definition,
        "metadata": {
            **metadata,
            "labels": {**(metadata.get("labels") or {}), **shared_labels()},
            "annotations": {**(metadata.get("annotations") or {}), **PULUMI_ANNOTATIONS},
        },
    }


def rights(rules: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Return ServiceAccount, ClusterRole and ClusterRoleBinding.

    Args:
        rules: what the operator uses.
    """
    return (
        wanted(
            SERVICE_ACCOUNT,
            names.OPERATOR,
            namespace=names.SYSTEM_NAMESPACE,
            labels=shared_labels(),
            automountServiceAccountToken=False,
        ),
        wanted(
            CLUSTER_ROLE,
            names.OPERATOR_ROLE,
            labels=shared_labels(),
            rules=[dict(rule) for rule in rules],
        ),
        wanted(
            CLUSTER_ROLE_BINDING,
            names.OPERATOR_ROLE_BINDING,
            labels=shared_labels(),
            roleRef={
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": names.OPERATOR_ROLE,
            },
            subjects=[
                {
                    "kind": "ServiceAccount",
                    "name": names.OPERATOR,
                    "namespace": names.SYSTEM_NAMESPACE,
                }
            ],
        ),
    )


def deployment(*, image: str, kit_version: str, priority_class: str) -> dict[str, Any]:
    """Return the wanted Deployment; its version label is what keeps an older Kit away.

    Args:
        image: the Kit image of the operator.
        kit_version: the version that it is.
        priority_class: the class of control pods.
    """
    selector = {names.LABEL_CONTROL_PLANE: names.CONTROL_PLANE}
    return wanted(
        DEPLOYMENT,
        names.OPERATOR,
        namespace=names.SYSTEM_NAMESPACE,
        labels={**shared_labels(), **selector, names.LABEL_VERSION: kit_version},
        spec={
            "replicas": 1,
            "selector": {"matchLabels": selector},
            "template": {
                "metadata": {"labels": {**shared_labels(), **selector}},
                "spec": {
                    "serviceAccountName": names.OPERATOR,
                    "automountServiceAccountToken": True,
                    "enableServiceLinks": False,
                    "priorityClassName": priority_class,
                    "terminationGracePeriodSeconds": 10,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": names.OPERATOR_UID,
                        "runAsGroup": names.OPERATOR_UID,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [_manager(image)],
                    "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}],
                },
            },
        },
    )


def _manager(image: str) -> dict[str, Any]:
    return {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [names.LAUNCHER_OPERATOR],
        "ports": [
            {"name": "health", "containerPort": names.OPERATOR_HEALTH_PORT, "protocol": "TCP"}
        ],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": names.OPERATOR_HEALTH_PORT},
            "initialDelaySeconds": 15,
            "periodSeconds": 20,
        },
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": names.OPERATOR_HEALTH_PORT},
            "initialDelaySeconds": 1,
            "periodSeconds": 2,
            "failureThreshold": 15,
        },
        "resources": {
            "requests": {"cpu": "50m", "memory": "256Mi"},
            "limits": {"memory": "256Mi"},
        },
        "securityContext": dict(RESTRICTED),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "tmp", "mountPath": TMP_PATH}],
    }
