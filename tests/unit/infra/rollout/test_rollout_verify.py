"""What counts as a pod that runs the expected image."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from jr2.errors import StepFailed
from jr2_infra.rollout.verify import Verified, conclude, look, stands

if TYPE_CHECKING:
    from tests.unit.infra.rollout.conftest import Rollout

IMAGE = "registry.example/jr2-orchestrator:1.0.0"
MANIFEST = f"sha256:{'a' * 64}"
CONFIG = f"sha256:{'b' * 64}"
OTHER = f"sha256:{'c' * 64}"


def running(rollout: Rollout, image_id: str = "") -> dict[str, Any]:
    pod = rollout.pod(ready=True, state={"running": {}}, phase="Running")
    pod["status"]["containerStatuses"][0]["imageID"] = image_id
    return pod


@pytest.mark.parametrize(
    ("image_id", "runs"),
    [
        (f"registry.example/jr2-orchestrator@{MANIFEST}", ""),
        (CONFIG, ""),
        ("", ""),
        (f"registry.example/jr2-orchestrator@{OTHER}", f"{IMAGE}@{OTHER}"),
        (OTHER, f"{IMAGE}@{OTHER}"),
    ],
)
def test_the_same_ref_with_another_digest_is_another_image(
    rollout: Rollout, image_id: str, runs: str
) -> None:
    workload = replace(rollout.workload, digest=MANIFEST, config=CONFIG)
    found = look(workload, [running(rollout, image_id)])
    assert found == (Verified(count=0, other=(runs,)) if runs else Verified(count=1))


def test_pods_that_go_or_were_evicted_do_not_count(rollout: Rollout) -> None:
    going, evicted = running(rollout), running(rollout)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    evicted["status"]["phase"] = "Failed"
    for pod in (going, evicted):
        pod["spec"]["containers"][0]["image"] = "registry.example/other:1"
    found = [going, evicted, running(rollout)]
    assert look(rollout.workload, found) == Verified(count=1)
    assert stands(rollout.workload, rollout.deployment(complete=True), found) == 1


def test_a_daemon_set_that_no_node_takes_stands_and_a_workload_without_its_pod_does_not(
    rollout: Rollout,
) -> None:
    nowhere = rollout.daemon_set(
        desiredNumberScheduled=0, updatedNumberScheduled=0, numberAvailable=0
    )
    assert stands(rollout.workload, nowhere, []) == 0
    assert stands(rollout.workload, rollout.deployment(complete=True), []) is None
    assert stands(rollout.workload, None, []) is None


def test_of_several_containers_only_the_named_one_is_compared(rollout: Rollout) -> None:
    pod = running(rollout)
    pod["spec"]["containers"].append({"name": "custodian", "image": "envoy:1"})
    named = replace(rollout.workload, container="orchestrator")
    assert look(rollout.workload, [pod]).other == ("envoy:1",)
    assert look(named, [pod]) == Verified(count=1)


def test_the_error_names_each_other_image_once(rollout: Rollout) -> None:
    found = []
    for image in ("other:1", "other:2", "other:1"):
        pod = running(rollout)
        pod["spec"]["containers"][0]["image"] = image
        found.append(pod)
    with pytest.raises(StepFailed, match=r"carries other:1, other:2 — expected"):
        conclude(rollout.workload, look(rollout.workload, found))
