"""Deployments, ReplicaSets, pods and events as the API gives them while a rollout goes on."""

from __future__ import annotations

from typing import Any

import pytest

from jr2_infra.rollout.decide import Observation, Workload

IMAGE = "registry.example/jr2-orchestrator:1.0.0"


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
            "spec": {"replicas": 1},
            "status": {
                "observedGeneration": 2,
                "replicas": 1,
                "updatedReplicas": 1 if complete else 0,
                "availableReplicas": 1,
                "conditions": conditions,
                **status,
            },
        }

    def replica_set(self, revision: str = "2", hash: str = "new") -> dict[str, Any]:
        return {
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"jr2-orchestrator-{hash}",
                "ownerReferences": [{"uid": "deployment-uid"}],
                "annotations": {"deployment.kubernetes.io/revision": revision},
                "labels": {"pod-template-hash": hash},
            },
        }

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
            "containers": [{"name": "orchestrator", "image": IMAGE}],
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

    def seen(self, *found: dict[str, Any], deployment: dict[str, Any] | None = None) -> Observation:
        return Observation(
            deployment=deployment or self.deployment(),
            replica_sets=[self.replica_set("1", "old"), self.replica_set()],
            pods=found,
        )


@pytest.fixture
def rollout() -> Rollout:
    return Rollout()
