"""Workloads that cannot start, each with one fault, and how the wait for each of them ended."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from jr2_infra.rollout.workload import WorkloadKind

from .broken import (
    FOREIGN,
    NEVER_READY,
    container,
    crashing,
    manifest,
    ready_when,
    shell,
    spec,
    workload,
)

if TYPE_CHECKING:
    from .conftest import Cluster, Outcome

FREE, QUOTA, STRICT = "rollout-free", "rollout-quota", "rollout-strict"
MISSING = "jr2.local/rollout-nowhere:1"


def env_from(kind: str, name: str, key: str) -> dict[str, Any]:
    """A container with an env that references an object."""
    return container(env=[{"name": "E", "valueFrom": {kind: {"name": name, "key": key}}}])


def mounting(volume: dict[str, Any], path: str = "/v", **more: Any) -> dict[str, Any]:
    """A pod with a volume."""
    mounted = container(volumeMounts=[{"name": "v", "mountPath": path}], **more)
    return spec(mounted, volumes=[{"name": "v", **volume}])


ONCE = (
    "if [ -e /v/been ]; then touch /v/twice; sleep 3600; else touch /v/been; echo first; exit 1; fi"
)
FOREIGN_VOLUME = {"configMap": {"name": "foreign", "defaultMode": 0o755}}

CASES: dict[str, tuple[str, WorkloadKind, dict[str, Any]]] = {
    "well": (FREE, "Deployment", spec()),
    "pull": (FREE, "Deployment", spec(container(image=MISSING))),
    "crash": (FREE, "Deployment", spec(crashing(script="echo to the log; exit 3"))),
    "crash-silent": (FREE, "Deployment", spec(crashing(script="exit 4"))),
    "crash-beside": (
        FREE,
        "Deployment",
        spec(
            container("first", readinessProbe=NEVER_READY),
            crashing("second", script="echo I am the one; exit 5"),
        ),
    ),
    "no-program": (FREE, "Deployment", spec(container(command=["/no/such/program"]))),
    "env-secret": (FREE, "Deployment", spec(env_from("secretKeyRef", "no-secret", "k"))),
    "env-map": (FREE, "Deployment", spec(env_from("configMapKeyRef", "no-map", "k"))),
    "env-key": (FREE, "Deployment", spec(env_from("configMapKeyRef", "foreign", "no-key"))),
    "env-from": (
        FREE,
        "Deployment",
        spec(container(envFrom=[{"secretRef": {"name": "no-secret-from"}}])),
    ),
    "volume-map": (FREE, "Deployment", mounting({"configMap": {"name": "no-volume-map"}})),
    "volume-secret": (FREE, "Deployment", mounting({"secret": {"secretName": "no-volume-secret"}})),
    "volume-key": (
        FREE,
        "Deployment",
        mounting({"configMap": {"name": "foreign", "items": [{"key": "none", "path": "p"}]}}),
    ),
    "root": (FREE, "Deployment", spec(container(securityContext={"runAsNonRoot": True}))),
    "platform": (FREE, "Deployment", mounting(FOREIGN_VOLUME, command=["/v/program"])),
    "init": (
        FREE,
        "Deployment",
        spec(
            initContainers=[container("preflight", command=shell("echo no glibc here; exit 127"))]
        ),
    ),
    "once": (
        FREE,
        "Deployment",
        mounting(
            {"emptyDir": {}},
            command=shell(ONCE),
            # For a moment its first run counts as one that goes on.
            readinessProbe=ready_when("test", "-e", "/v/twice"),
        ),
    ),
    "stateful-crash": (FREE, "StatefulSet", spec(crashing(script="echo st; exit 6"))),
    "daemon-pull": (FREE, "DaemonSet", spec(container(image=MISSING))),
    "daemon-nowhere": (FREE, "DaemonSet", spec(nodeSelector={"jr2.dev/no-such-node": "true"})),
    "quota": (QUOTA, "Deployment", spec()),
    "stateful-quota": (QUOTA, "StatefulSet", spec()),
    "daemon-quota": (QUOTA, "DaemonSet", spec()),
    "strict": (
        STRICT,
        "Deployment",
        spec(container("privileged-one", securityContext={"privileged": True})),
    ),
}


def roll_out_all(cluster: Cluster) -> dict[str, Outcome]:
    """Apply every case and wait for it as a `Rollout` step waits, all at the same time."""
    strict = {"pod-security.kubernetes.io/enforce": "restricted"}
    with (
        cluster.namespace(FREE),
        cluster.namespace(QUOTA),
        cluster.namespace(STRICT, strict),
    ):
        cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "foreign", "namespace": FREE},
                "binaryData": {"program": base64.b64encode(FOREIGN.encode("latin-1")).decode()},
            },
        )
        cluster.allow_no_pods("team-quota", QUOTA)

        def rolled_out(name: str) -> Outcome:
            namespace, kind, pod = CASES[name]
            image = pod["containers"][0]["image"]
            what = workload(name, namespace, kind=kind, image=image)
            cluster.apply(manifest(what, pod))
            return cluster.wait(what)

        with ThreadPoolExecutor(len(CASES)) as pool:
            ended = pool.map(rolled_out, CASES)
            return dict(zip(CASES, ended, strict=True))
