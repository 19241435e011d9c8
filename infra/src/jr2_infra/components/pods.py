"""What the pods of jr2 have in common: the workload around them, their user, containers and probes.

Every pod meets the `restricted` Pod Security Standard but where its component says otherwise, has a
token only where it calls the API, and gets no variables of other Services. A container of jr2 has a
read-only root, no capability and a folder `/tmp` of its own.

Source: design §6.3, spec/converge.md §5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jr2 import names

from ..closed_list import Kind
from .base import wanted

RESTRICTED: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
"""The container half of the `restricted` Pod Security Standard, and a read-only root."""

SECCOMP: Final[Mapping[str, Any]] = {"seccompProfile": {"type": "RuntimeDefault"}}
"""What also a pod with a container of uid 0 says."""

TMP_PATH: Final = "/tmp"  # noqa: S108 - a volume of the pod, which no other pod sees


def workload(
    kind: Kind,
    name: str,
    *,
    namespace: str,
    labels: Mapping[str, str],
    kit_version: str,
    selector: Mapping[str, str],
    pod: Mapping[str, Any],
    annotations: Mapping[str, str] | None = None,
    pod_annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return a wanted workload.

    Args:
        kind: Deployment, StatefulSet or DaemonSet.
        name: its fixed name.
        namespace: where it lives.
        labels: of the workload and of its pods.
        kit_version: what the workload says it is; its pods do not, so that a new version alone
            starts none of them.
        selector: labels of the pods by which the workload knows them.
        pod: the spec of a pod.
        annotations: of the workload.
        pod_annotations: of its pods; another value starts them anew.
        **spec: what else its kind says.

    Raises:
        Refusal: its annotations are longer than Kubernetes takes.
    """
    metadata: dict[str, Any] = {"labels": {**labels, **selector}}
    if pod_annotations is not None:
        metadata["annotations"] = dict(pod_annotations)
    return wanted(
        kind,
        name,
        namespace=namespace,
        labels={**labels, names.LABEL_VERSION: kit_version},
        annotations=annotations,
        spec={
            **spec,
            "selector": {"matchLabels": dict(selector)},
            "template": {"metadata": metadata, "spec": dict(pod)},
        },
    )


def pod(
    *,
    priority_class: str,
    security: Mapping[str, Any],
    service_account: str | None = None,
    token: bool = False,
    **rest: Any,
) -> dict[str, Any]:
    """Return the spec of a pod.

    Args:
        priority_class: its PriorityClass.
        security: its security context.
        service_account: who it is at the API; the default account of its namespace without one.
        token: give each of its containers the token of that account.
        **rest: containers, volumes, and where it may run.
    """
    account = {} if service_account is None else {"serviceAccountName": service_account}
    return {
        **account,
        "automountServiceAccountToken": token,
        "enableServiceLinks": False,
        "priorityClassName": priority_class,
        "securityContext": dict(security),
        **rest,
    }


def security(user: int, group: int, *, volumes: int | None = None) -> dict[str, Any]:
    """Return the pod half of the `restricted` Pod Security Standard.

    Args:
        user: the uid of its containers, and of the pause container, which has no other.
        group: their gid.
        volumes: the gid of the files on its volumes; only a volume whose root has another is
            walked. Without one the volumes stay as they are.
    """
    owned = {} if volumes is None else {"fsGroup": volumes, "fsGroupChangePolicy": "OnRootMismatch"}
    return {"runAsNonRoot": True, "runAsUser": user, "runAsGroup": group, **owned, **SECCOMP}


def container(
    name: str,
    image: str,
    command: Sequence[str],
    *,
    cpu: str,
    memory: str,
    mounts: Sequence[Mapping[str, Any]],
    tmp: str = "tmp",
    limit: str | None = None,
    user: Mapping[str, int] | None = None,
    **rest: Any,
) -> dict[str, Any]:
    """Return a container that runs a program of jr2.

    Args:
        name: its name in the pod.
        image: its Kit image.
        command: the program and its arguments.
        cpu: what it asks for; it has no limit of cpu.
        memory: what it asks for.
        limit: the limit of its memory, when it is not what it asks for.
        mounts: its volumes beside `/tmp`.
        tmp: the volume of the pod that is its `/tmp`.
        user: `runAsUser` and `runAsGroup`, where they are not the pod's.
        **rest: environment, ports and probes.
    """
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        **rest,
        "resources": {
            "requests": {"cpu": cpu, "memory": memory},
            "limits": {"memory": limit or memory},
        },
        "securityContext": {**RESTRICTED, **(user or {})},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [*mounts, {"name": tmp, "mountPath": TMP_PATH}],
    }


def empty_dir(name: str, size: str) -> dict[str, Any]:
    """Return a volume that is empty at the start of the pod and goes with it."""
    return {"name": name, "emptyDir": {"sizeLimit": size}}


def port(name: str, number: int) -> dict[str, Any]:
    """Return a port of a container."""
    return {"name": name, "containerPort": number, "protocol": "TCP"}


def from_field(name: str, path: str) -> dict[str, Any]:
    """Return a variable that holds a field of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def ready_probe(number: int, path: str = "/healthz") -> dict[str, Any]:
    """Return how the kubelet asks one of our HTTP programs whether it takes requests."""
    return {
        "httpGet": {"path": path, "port": number},
        "initialDelaySeconds": 1,
        "periodSeconds": 2,
        "failureThreshold": 15,
    }


def live_probe(number: int) -> dict[str, Any]:
    """Return how the kubelet asks one of our HTTP programs whether it is to be started again."""
    return {
        "httpGet": {"path": "/healthz", "port": number},
        "periodSeconds": 10,
        "failureThreshold": 30,
    }


def watcher_probes(number: int) -> dict[str, Any]:
    """Return how the kubelet asks a program that follows the cluster and serves nobody.

    It lives while its watches make progress, and is ready once it has its first lists.
    """
    return {
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": number},
            "initialDelaySeconds": 15,
            "periodSeconds": 20,
        },
        "readinessProbe": ready_probe(number, "/readyz"),
    }
