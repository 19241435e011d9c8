"""The Orchestrator of an Instance: its volume, its rights, its two containers and its Service.

The container `orchestrator` holds the store, the API and all network; the container `worker` runs
the Instance's code with its own user, no environment, no token and no Secret, and sees the
Assemblies read-only. Nothing in the pod template depends on the Assembly, so a publish starts no
pod again; a new image or new values do.

Source: spec/converge.md §5.2, design §4.4 and §6.3.
"""

from __future__ import annotations

from typing import Any

from jr2 import names, rbac

from ..closed_list import CLAIM, DEPLOYMENT, SERVICE
from . import service_account
from .base import RESTRICTED, TMP_PATH, instance_labels, live_probe, ready_probe, wanted

STATE_VOLUME = "state"
SOCKET_VOLUME = "socket"
VALUES_VOLUME = "values"
ACCESS_VOLUME = "access"


def state_claim(instance: str, namespace: str, *, size: str) -> dict[str, Any]:
    """Return the wanted claim of the state volume.

    It names no storage class: the cluster gives its default one, and whatever class a claim got
    stays, so that `immutable` has none to compare.

    Args:
        instance: the Instance.
        namespace: its namespace.
        size: what it asks for; a claim that was made larger keeps its size.
    """
    return wanted(
        CLAIM,
        names.STATE_CLAIM,
        namespace=namespace,
        labels=instance_labels(instance),
        spec={
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        },
    )


def rights(instance: str, namespace: str) -> tuple[dict[str, Any], ...]:
    """Return ServiceAccount, Role and RoleBinding: the verbs that the Orchestrator uses."""
    return service_account.rights(instance, namespace, names.ORCHESTRATOR, rbac.ORCHESTRATOR_RULES)


def service(instance: str, namespace: str) -> dict[str, Any]:
    """Return the wanted Service."""
    return wanted(
        SERVICE,
        names.ORCHESTRATOR,
        namespace=namespace,
        labels=instance_labels(instance),
        spec={
            "type": "ClusterIP",
            "selector": {names.LABEL_APP: names.ORCHESTRATOR},
            "ports": [
                {
                    "name": "http",
                    "port": names.ORCHESTRATOR_PORT,
                    "targetPort": names.ORCHESTRATOR_PORT,
                    "protocol": "TCP",
                }
            ],
        },
    )


def deployment(
    instance: str,
    namespace: str,
    *,
    image: str,
    kit_version: str,
    images: str,
    values_digest: str,
    priority_class: str,
) -> dict[str, Any]:
    """Return the wanted Deployment.

    Args:
        instance: the Instance.
        namespace: its namespace.
        image: the Kit image of both containers.
        kit_version: what the Deployment says it is.
        images: `images.json`, on the Deployment's own metadata, so that a new ref starts no pod.
        values_digest: the digest of the Orchestrator's Secret.
        priority_class: the class of control pods.
    """
    labels = instance_labels(instance)
    return wanted(
        DEPLOYMENT,
        names.ORCHESTRATOR,
        namespace=namespace,
        labels={**labels, names.LABEL_VERSION: kit_version},
        annotations={names.ANNOTATION_IMAGES: images},
        spec={
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {names.LABEL_APP: names.ORCHESTRATOR}},
            "template": {
                "metadata": {
                    "labels": {**labels, names.LABEL_APP: names.ORCHESTRATOR},
                    "annotations": {names.ANNOTATION_VALUES_DIGEST: values_digest},
                },
                "spec": {
                    "serviceAccountName": names.ORCHESTRATOR,
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "priorityClassName": priority_class,
                    "securityContext": {
                        "runAsNonRoot": True,
                        # The pause container needs a user beside the group.
                        "runAsUser": names.ORCHESTRATOR_UID,
                        "runAsGroup": names.STATE_GROUP,
                        "fsGroup": names.STATE_GROUP,
                        "fsGroupChangePolicy": "OnRootMismatch",
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [_orchestrator(image), _worker(image)],
                    "volumes": _volumes(),
                },
            },
        },
    )


def _orchestrator(image: str) -> dict[str, Any]:
    return {
        "name": names.CONTAINER_ORCHESTRATOR,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [names.LAUNCHER_ORCHESTRATOR],
        "env": [
            {
                "name": names.ENV_NAMESPACE,
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}},
            }
        ],
        "ports": [{"name": "http", "containerPort": names.ORCHESTRATOR_PORT, "protocol": "TCP"}],
        "readinessProbe": ready_probe(names.ORCHESTRATOR_PORT),
        "livenessProbe": live_probe(names.ORCHESTRATOR_PORT),
        "resources": {
            "requests": {"cpu": "250m", "memory": "512Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {**RESTRICTED, "runAsUser": names.ORCHESTRATOR_UID},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": STATE_VOLUME, "mountPath": names.STATE_PATH},
            {"name": SOCKET_VOLUME, "mountPath": names.SOCKET_DIR},
            {"name": VALUES_VOLUME, "mountPath": names.VALUES_PATH, "readOnly": True},
            {"name": ACCESS_VOLUME, "mountPath": names.SERVICE_ACCOUNT_PATH, "readOnly": True},
            {"name": "orchestrator-tmp", "mountPath": TMP_PATH},
        ],
    }


def _worker(image: str) -> dict[str, Any]:
    return {
        "name": names.CONTAINER_WORKER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [names.LAUNCHER_WORKER],
        "resources": {
            "requests": {"cpu": "250m", "memory": "512Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {**RESTRICTED, "runAsUser": names.WORKER_UID},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {
                "name": STATE_VOLUME,
                "mountPath": names.WORKER_ASSEMBLIES_PATH,
                "subPath": names.ASSEMBLIES_DIR,
                "readOnly": True,
            },
            {"name": SOCKET_VOLUME, "mountPath": names.SOCKET_DIR},
            {"name": "worker-tmp", "mountPath": TMP_PATH},
        ],
    }


def _volumes() -> list[dict[str, Any]]:
    return [
        {"name": STATE_VOLUME, "persistentVolumeClaim": {"claimName": names.STATE_CLAIM}},
        {"name": SOCKET_VOLUME, "emptyDir": {"sizeLimit": "1Mi"}},
        {"name": "orchestrator-tmp", "emptyDir": {"sizeLimit": "512Mi"}},
        {"name": "worker-tmp", "emptyDir": {"sizeLimit": "256Mi"}},
        {
            "name": VALUES_VOLUME,
            "secret": {"secretName": names.ORCHESTRATOR, "defaultMode": 0o440},
        },
        {
            # The token of the ServiceAccount, in the one container that calls the API.
            "name": ACCESS_VOLUME,
            "projected": {
                "defaultMode": 0o440,
                "sources": [
                    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
                    {
                        "configMap": {
                            "name": "kube-root-ca.crt",
                            "items": [{"key": "ca.crt", "path": "ca.crt"}],
                        }
                    },
                    {
                        "downwardAPI": {
                            "items": [
                                {
                                    "path": "namespace",
                                    "fieldRef": {"fieldPath": "metadata.namespace"},
                                }
                            ]
                        }
                    },
                ],
            },
        },
    ]
