"""The operator of a cluster: its namespace, its CRDs, its rights, its pod and the priority classes.

All of it is shared by the Instances of the cluster. A converge leaves it out when a newer Kit put
it there, and a plain `pulumi destroy` of one Instance leaves it standing.

Source: spec/converge.md §5.11 and §6.2, design §5.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jr2 import names

from ..closed_list import DEPLOYMENT, NAMESPACE, PRIORITY_CLASS
from . import pods, service_account
from .base import PULUMI_ANNOTATIONS, shared_labels, wanted

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
    return service_account.cluster_rights(
        names.OPERATOR,
        role=names.OPERATOR_ROLE,
        binding=names.OPERATOR_ROLE_BINDING,
        rules=rules,
    )


def deployment(*, image: str, kit_version: str, priority_class: str) -> dict[str, Any]:
    """Return the wanted Deployment; its version label is what keeps an older Kit away.

    Args:
        image: the Kit image of the operator.
        kit_version: the version that it is.
        priority_class: the class of control pods.
    """
    selector = {names.LABEL_CONTROL_PLANE: names.CONTROL_PLANE}
    return pods.workload(
        DEPLOYMENT,
        names.OPERATOR,
        namespace=names.SYSTEM_NAMESPACE,
        labels={**shared_labels(), **selector},
        kit_version=kit_version,
        replicas=1,
        selector=selector,
        pod=pods.pod(
            service_account=names.OPERATOR,
            token=True,
            priority_class=priority_class,
            terminationGracePeriodSeconds=10,
            security=pods.security(names.OPERATOR_UID, names.OPERATOR_UID),
            containers=[_manager(image)],
            volumes=[pods.empty_dir("tmp", "64Mi")],
        ),
    )


def _manager(image: str) -> dict[str, Any]:
    return pods.container(
        CONTAINER,
        image,
        [names.LAUNCHER_OPERATOR],
        ports=[pods.port("health", names.OPERATOR_HEALTH_PORT)],
        **pods.watcher_probes(names.OPERATOR_HEALTH_PORT),
        cpu="50m",
        memory="256Mi",
        mounts=[],
    )
