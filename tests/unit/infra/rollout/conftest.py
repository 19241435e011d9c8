"""Deployments, ReplicaSets, pods and events as the API gives them while a rollout goes on."""

from __future__ import annotations

from typing import Any

import pytest

from jr2_infra.rollout.decide import Observation
from jr2_infra.rollout.workload import Workload

IMAGE = "registry.example/jr2-orchestrator:1.0.0"

PROBE = {"httpGet": {"path": "/healthz", "port": 4000}}


class Rollout:
    """Builds one observation after another."""

    workload = Workload(
        layer="orchestrator",
        name="jr2-orchestrator",
        namespace="my-instance",
        selector="app=jr2-orchestrator",
        image=IMAGE,
    )

    def deployment(
        self, *, complete: bool = False, failure: str = "", **status: Any
    ) -> dict[str, Any]:
        conditions = (
            [
                {
                    "type": "ReplicaFailure",
                    "status": "True",
                    "reason": "FailedCreate",
                    "message": failure,
                }
            ]
            if failure
            else []
        )
        return {
            "kind": "Deployment",
            "metadata": {
                "name": "jr2-orchestrator",
                "uid": "deployment-uid",
                "generation": 2,
                "annotations": {"deployment.kubernetes.io/revision": "2"},
            },
            "spec": {"replicas": 1, "template": self.template(IMAGE)},
            "status": {
                "observedGeneration": 2,
                "replicas": 1,
                "updatedReplicas": 1 if complete else 0,
                "availableReplicas": 1,
                "conditions": conditions,
                **status,
            },
        }

    def template(self, image: str, hash: str = "") -> dict[str, Any]:
        labels = {"app": "jr2-orchestrator"} | ({"pod-template-hash": hash} if hash else {})
        return {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "orchestrator", "image": image}]},
        }

    def replica_set(self, hash: str = "new", image: str = IMAGE) -> dict[str, Any]:
        return {
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"jr2-orchestrator-{hash}",
                "uid": f"uid-{hash}",
                "ownerReferences": [{"uid": "deployment-uid"}],
                "labels": {"pod-template-hash": hash},
            },
            "spec": {"template": self.template(image, hash)},
        }

    def replica_sets(self) -> list[dict[str, Any]]:
        return [
            self.replica_set("old", "registry.example/jr2-orchestrator:0.9.0"),
            self.replica_set(),
        ]

    def pod(
        self,
        *,
        name: str = "jr2-orchestrator-5cd48ff77f-m7qhw",
        hash: str = "new",
        phase: str = "Pending",
        ready: bool = False,
        state: dict[str, Any] | None = None,
        message: str = "",
        restarts: int = 0,
        last: dict[str, Any] | None = None,
        init: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        status: dict[str, Any] = {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [
                {
                    "name": "orchestrator",
                    "ready": ready,
                    "restartCount": restarts,
                    "state": state or {"waiting": {"reason": "ContainerCreating"}},
                    "lastState": {"terminated": last} if last else {},
                }
            ],
        }
        spec: dict[str, Any] = {
            "nodeName": "jr2-control-plane",
            "containers": [{"name": "orchestrator", "image": IMAGE, "readinessProbe": PROBE}],
        }
        if init is not None:
            spec["initContainers"] = [{"name": "preflight", "image": IMAGE}]
            status["initContainerStatuses"] = [{"name": "preflight", "ready": False, **init}]
        return {
            "kind": "Pod",
            "metadata": {
                "name": name,
                "uid": f"uid-{name}",
                "labels": {"app": "jr2-orchestrator", "pod-template-hash": hash},
            },
            "spec": spec,
            "status": status,
        }

    def old_pod(self) -> dict[str, Any]:
        return self.pod(
            name="jr2-orchestrator-old",
            hash="old",
            phase="Running",
            ready=True,
            state={"running": {}},
        )

    def event(
        self, second: int, reason: str, text: str, *, of: dict[str, Any], place: str = ""
    ) -> dict[str, Any]:
        """An event about an object; `place` names a container or a volume of a pod."""
        return {
            "type": "Normal" if reason in ("Pulling", "Pulled", "SuccessfulCreate") else "Warning",
            "reason": reason,
            "message": text,
            "firstTimestamp": f"2026-01-01T00:00:{second:02}Z",
            "lastTimestamp": f"2026-01-01T00:00:{second:02}Z",
            "involvedObject": {
                "kind": of["kind"],
                "name": of["metadata"]["name"],
                "uid": of["metadata"]["uid"],
                "fieldPath": place,
            },
        }

    def daemon_set(self, *, complete: bool = False, **status: Any) -> dict[str, Any]:
        return {
            "kind": "DaemonSet",
            "metadata": {"name": "jr2-repo-cache", "uid": "daemon-uid", "generation": 2},
            "status": {
                "observedGeneration": 2,
                "desiredNumberScheduled": 1,
                "updatedNumberScheduled": 1 if complete else 0,
                "numberAvailable": 1,
                **status,
            },
        }

    def stateful_set(self, *, complete: bool = False, **status: Any) -> dict[str, Any]:
        return {
            "kind": "StatefulSet",
            "metadata": {"name": "jr2-instance-harness", "uid": "stateful-uid", "generation": 2},
            "spec": {"replicas": 1},
            "status": {
                "observedGeneration": 2,
                "replicas": 1,
                "readyReplicas": 1,
                "currentRevision": "harness-new" if complete else "harness-old",
                "updateRevision": "harness-new",
                **status,
            },
        }

    def controller_revision(self, hash: str, number: int, *, of: dict[str, Any]) -> dict[str, Any]:
        return {
            "kind": "ControllerRevision",
            "metadata": {
                "name": f"harness-{hash}",
                "labels": {"controller-revision-hash": hash},
                "ownerReferences": [{"uid": of["metadata"]["uid"]}],
            },
            "revision": number,
        }

    def labelled(self, pod: dict[str, Any], revision: str) -> dict[str, Any]:
        """A pod as a DaemonSet or a StatefulSet labels it."""
        pod["metadata"]["labels"] = {"controller-revision-hash": revision}
        return pod

    def seen(
        self,
        *found: dict[str, Any],
        deployment: dict[str, Any] | None = None,
        events: list[dict[str, Any]] | None = None,
    ) -> Observation:
        return Observation(
            workload=deployment or self.deployment(),
            revisions=self.replica_sets(),
            pods=found,
            events=events or [],
        )


@pytest.fixture
def rollout() -> Rollout:
    return Rollout()
