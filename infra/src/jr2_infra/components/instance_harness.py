"""The Instance Harness: the one Harness in which the Turns of Menu-only Agents run.

A StatefulSet of one pod: a Harness, a Custodian, and the claim of the conversations, which outlives
the pod and the StatefulSet. The Custodian is a native sidecar, so it is there before the Harness and
goes after it.

Source: spec/converge.md §5.7 and §5.10, spec/runtime.md §2.3, ADR-0157.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jr2 import names
from jr2.config import EnvFrom, EnvVar
from jr2.custodian import Composed

from ..closed_list import STATEFUL_SET
from . import harness_env, network, pods
from .base import instance_labels

_CONVERSATIONS = "conversations"
NO_EVICTION = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
"""A Turn is lost with its pod, so no autoscaler may move it."""


def services(instance: str, namespace: str) -> tuple[dict[str, Any], ...]:
    """Return the Service that the Orchestrator calls, and the one that a StatefulSet names."""
    return tuple(
        network.service(
            instance,
            namespace,
            name,
            app=names.INSTANCE_HARNESS,
            port=names.HARNESS_PORT,
            **kind,
        )
        for name, kind in (
            (names.INSTANCE_HARNESS, {}),
            (names.INSTANCE_HARNESS_PODS, {"clusterIP": "None"}),
        )
    )


def stateful_set(
    instance: str,
    namespace: str,
    *,
    image: str,
    kit_version: str,
    priority_class: str,
    bearer_digest: str,
    read_digest: str,
    env: Sequence[EnvVar],
    env_from: Sequence[EnvFrom],
    custodian: Composed,
) -> dict[str, Any]:
    """Return the wanted StatefulSet.

    Args:
        instance: the Instance.
        namespace: its namespace.
        image: the Kit image of the Harness.
        kit_version: what the StatefulSet says it is.
        priority_class: the class of Sandboxes.
        bearer_digest: of the bearer that the Harness opens to.
        read_digest: of all that its containers read once, at their start.
        env: `harness.env` of the config.
        env_from: `harness.env_from` of the config.
        custodian: the Custodian of the pod.
    """
    harness = _harness(
        image, bearer_digest=bearer_digest, env=env, env_from=env_from, custodian=custodian
    )
    claimed = {"claimName": names.CONVERSATIONS_CLAIM}
    return pods.workload(
        STATEFUL_SET,
        names.INSTANCE_HARNESS,
        namespace=namespace,
        labels=instance_labels(instance),
        kit_version=kit_version,
        replicas=1,
        # With the default order, a pod that never gets ready would stand in the way of its own
        # repair: Kubernetes waits for it before it makes the next revision.
        podManagementPolicy="Parallel",
        updateStrategy={"type": "RollingUpdate"},
        serviceName=names.INSTANCE_HARNESS_PODS,
        selector={names.LABEL_APP: names.INSTANCE_HARNESS},
        pod_annotations={**NO_EVICTION, names.ANNOTATION_HELD_DIGEST: read_digest},
        pod=pods.pod(
            priority_class=priority_class,
            security=pods.security(names.HARNESS_UID, names.HARNESS_UID, volumes=names.WORK_GROUP),
            initContainers=[{**custodian.container, "restartPolicy": "Always"}],
            containers=[harness],
            volumes=[
                *custodian.volumes,
                {"name": _CONVERSATIONS, "persistentVolumeClaim": claimed},
                pods.empty_dir("tmp", "256Mi"),
            ],
        ),
    )


def _harness(
    image: str,
    *,
    bearer_digest: str,
    env: Sequence[EnvVar],
    env_from: Sequence[EnvFrom],
    custodian: Composed,
) -> dict[str, Any]:
    settings = {"name": names.HARNESS_MAP, "key": names.HARNESS_KEY}
    return pods.container(
        names.CONTAINER_HARNESS,
        image,
        [names.TREE_INIT, "--", names.LAUNCHER_HARNESS],
        env=[
            {"name": names.ENV_HARNESS_JSON, "valueFrom": {"configMapKeyRef": settings}},
            {"name": names.ENV_MENU_ONLY, "value": "1"},
            {"name": names.ENV_CONVERSATIONS, "value": names.CONVERSATIONS_PATH},
            *harness_env.referenced(env),
            # After the user's own: they win over each variable of the same name.
            *custodian.harness_env,
            {"name": names.ENV_HARNESS_TOKEN_DIGEST, "value": bearer_digest},
        ],
        envFrom=harness_env.env_from(env_from),
        ports=[pods.port("http", names.HARNESS_PORT)],
        readinessProbe=pods.ready_probe(names.HARNESS_PORT),
        cpu="250m",
        memory="1Gi",
        mounts=[
            *custodian.harness_mounts,
            {"name": _CONVERSATIONS, "mountPath": names.CONVERSATIONS_PATH},
        ],
    )
