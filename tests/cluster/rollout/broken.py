"""Workloads with one fault each, as a person would write them by mistake.

All run the busybox that every local cluster holds, so that no case needs a registry or a build.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from jr2_infra.rollout.workload import Workload, WorkloadKind

IMAGE: Final = "jr2.local/busybox:1"
FOREIGN: Final = "\x7fELF\x02\x01\x01" + "\0" * 9 + "\x02\0\xb7\0\x01\0\0\0" + "\0" * 40
"""The head of a program for another processor (arm64): the kernel refuses to execute it."""

NEVER_READY: Final = {"tcpSocket": {"port": 1}}
"""A probe that fails. Without one, a container counts as ready for as long as it runs, which on a
busy machine may be longer than the rollout waits to see."""
_SLEEP: Final = ("sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait")


def ready_when(*command: str) -> dict[str, Any]:
    """A probe that holds when a command ends well, however long a busy machine takes for it."""
    return {"exec": {"command": list(command)}, "periodSeconds": 1, "timeoutSeconds": 30}


def shell(script: str) -> list[str]:
    """Return the command of a container that runs a script."""
    return ["sh", "-c", script]


def crashing(name: str = "main", *, script: str) -> dict[str, Any]:
    """A container that starts, says something, and exits."""
    return container(name, command=shell(script), readinessProbe=NEVER_READY)


def container(
    name: str = "main", *, image: str = IMAGE, command: Sequence[str] = _SLEEP, **more: Any
) -> dict[str, Any]:
    """A container that sleeps until it is told to end, unless a case says otherwise.

    One that sleeps is watched by a probe, so that its rollout is believed at once.
    """
    probe = ready_when("true")
    watched = {"readinessProbe": probe} if command is _SLEEP else {}
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        **watched,
        **more,
    }


def spec(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The spec of a pod that goes at once when it is deleted."""
    return {
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "containers": list(containers) or [container()],
        **more,
    }


def workload(
    name: str, namespace: str, *, kind: WorkloadKind = "Deployment", image: str = IMAGE
) -> Workload:
    """What the rollout of a case waits for."""
    return Workload(
        layer=name,
        name=name,
        namespace=namespace,
        selector=f"app={name}",
        image=image,
        kind=kind,
    )


def manifest(found: Workload, pod: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The object that makes the pods of a case.

    Args:
        found: what is rolled out.
        pod: the spec of its pods.
        more: further fields of the object's spec.
    """
    labels = {"app": found.name}
    body: dict[str, Any] = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
        **more,
    }
    if found.kind != "DaemonSet":
        body.setdefault("replicas", 1)
    if found.kind == "StatefulSet":
        body |= {"serviceName": found.name, "podManagementPolicy": "Parallel"}
    return {
        "apiVersion": "apps/v1",
        "kind": found.kind,
        "metadata": {"name": found.name, "namespace": found.namespace},
        "spec": body,
    }
