"""The Orchestrator of an Instance: its rights, its two containers and its Service.

The container `orchestrator` holds the store, the API and all network; the container `worker` runs
the Instance's code with its own user, no environment, no token and no Secret, and sees the
Assemblies read-only. Nothing in the pod template depends on the Assembly, so a publish starts no
pod again; a new image or new values do.

Source: spec/converge.md §5.2, design §4.4 and §6.3.
"""

from __future__ import annotations

from typing import Any

from jr2 import names, rbac

from ..closed_list import DEPLOYMENT
from . import network, pods, service_account
from .base import instance_labels

STATE_VOLUME = "state"
SOCKET_VOLUME = "socket"
VALUES_VOLUME = "values"
ACCESS_VOLUME = "access"


def rights(instance: str, namespace: str) -> tuple[dict[str, Any], ...]:
    """Return ServiceAccount, Role and RoleBinding: the verbs that the Orchestrator uses."""
    return service_account.rights(instance, namespace, names.ORCHESTRATOR, rbac.ORCHESTRATOR_RULES)


def service(instance: str, namespace: str) -> dict[str, Any]:
    """Return the wanted Service."""
    return network.service(instance, namespace, names.ORCHESTRATOR, port=names.ORCHESTRATOR_PORT)


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
    return pods.workload(
        DEPLOYMENT,
        names.ORCHESTRATOR,
        namespace=namespace,
        labels=instance_labels(instance),
        kit_version=kit_version,
        annotations={names.ANNOTATION_IMAGES: images},
        replicas=1,
        strategy={"type": "Recreate"},
        selector={names.LABEL_APP: names.ORCHESTRATOR},
        pod_annotations={names.ANNOTATION_VALUES_DIGEST: values_digest},
        pod=pods.pod(
            service_account=names.ORCHESTRATOR,
            priority_class=priority_class,
            security=pods.security(
                names.ORCHESTRATOR_UID, names.STATE_GROUP, volumes=names.STATE_GROUP
            ),
            containers=[_orchestrator(image), _worker(image)],
            volumes=_volumes(),
        ),
    )


def _orchestrator(image: str) -> dict[str, Any]:
    return pods.container(
        names.CONTAINER_ORCHESTRATOR,
        image,
        [names.LAUNCHER_ORCHESTRATOR],
        env=[pods.from_field(names.ENV_NAMESPACE, "metadata.namespace")],
        ports=[pods.port("http", names.ORCHESTRATOR_PORT)],
        readinessProbe=pods.ready_probe(names.ORCHESTRATOR_PORT),
        livenessProbe=pods.live_probe(names.ORCHESTRATOR_PORT),
        cpu="250m",
        memory="512Mi",
        user={"runAsUser": names.ORCHESTRATOR_UID},
        mounts=[
            {"name": STATE_VOLUME, "mountPath": names.STATE_PATH},
            {"name": SOCKET_VOLUME, "mountPath": names.SOCKET_DIR},
            {"name": VALUES_VOLUME, "mountPath": names.VALUES_PATH, "readOnly": True},
            {"name": ACCESS_VOLUME, "mountPath": names.SERVICE_ACCOUNT_PATH, "readOnly": True},
        ],
        tmp="orchestrator-tmp",
    )


def _worker(image: str) -> dict[str, Any]:
    return pods.container(
        names.CONTAINER_WORKER,
        image,
        [names.LAUNCHER_WORKER],
        cpu="250m",
        memory="512Mi",
        user={"runAsUser": names.WORKER_UID},
        mounts=[
            {
                "name": STATE_VOLUME,
                "mountPath": names.WORKER_ASSEMBLIES_PATH,
                "subPath": names.ASSEMBLIES_DIR,
                "readOnly": True,
            },
            {"name": SOCKET_VOLUME, "mountPath": names.SOCKET_DIR},
        ],
        tmp="worker-tmp",
    )


def _volumes() -> list[dict[str, Any]]:
    return [
        {"name": STATE_VOLUME, "persistentVolumeClaim": {"claimName": names.STATE_CLAIM}},
        pods.empty_dir(SOCKET_VOLUME, "1Mi"),
        pods.empty_dir("orchestrator-tmp", "512Mi"),
        pods.empty_dir("worker-tmp", "256Mi"),
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
