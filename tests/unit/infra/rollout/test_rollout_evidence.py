"""The error of a failed rollout, in the layout of the seed, and its five diagnoses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jr2_infra.rollout import pods
from jr2_infra.rollout.diagnosis import diagnose, resolved
from jr2_infra.rollout.evidence import (
    Evidence,
    LogTail,
    PodEvidence,
    chosen_pods,
    last_events,
    message,
    no_pod_notes,
)

if TYPE_CHECKING:
    from tests.unit.infra.rollout.conftest import Rollout

IMAGE = "registry.example/jr2-orchestrator:1.0.0"
NOT_FOUND = (
    "rpc error: code = NotFound desc = failed to pull and unpack image "
    f'"{IMAGE}": failed to resolve reference "{IMAGE}": {IMAGE}: not found'
)
GOLDEN = f"""\
jr2-orchestrator: rollout did not complete in namespace my-instance — the pods say:

  pod jr2-orchestrator-5cd48ff77f-m7qhw (Pending) on node jr2-control-plane (amd64)
    container orchestrator: ImagePullBackOff
      image {IMAGE}
      Back-off pulling image "{IMAGE}": ErrImagePull: {NOT_FOUND}
    event Warning Failed: Error: ImagePullBackOff
    event Normal Pulling: Pulling image "{IMAGE}"
    event Warning Failed: Failed to pull image "{IMAGE}": {NOT_FOUND}
    event Warning Failed: Error: ErrImagePull

diagnosis: the kubelet could not pull {IMAGE}.
  it resolves to {IMAGE}
  check the push landed there and that this cluster may pull from it (credentials, network, mirror).

Command failed: kubectl --namespace my-instance rollout status deployment/jr2-orchestrator --timeout=180s
error: timed out waiting for the condition"""
LAST_WORDS = (
    "Command failed: kubectl --namespace my-instance rollout status deployment/jr2-orchestrator "
    "--timeout=180s\nerror: timed out waiting for the condition"
)


def event(second: int, kind: str, reason: str, text: str, name: str = "") -> dict[str, Any]:
    return {
        "type": kind,
        "reason": reason,
        "message": text,
        "lastTimestamp": f"2026-01-01T00:00:{second:02}Z",
        "involvedObject": {"name": name or "jr2-orchestrator-5cd48ff77f-m7qhw"},
    }


def of(rollout: Rollout, pod: dict[str, Any], **known: Any) -> Evidence:
    return Evidence(
        workload=rollout.workload,
        shown=(PodEvidence(pod=pod, architecture="amd64", **known),),
    )


def waiting(reason: str, text: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": text}}


def test_the_text_is_that_of_the_seed(rollout: Rollout) -> None:
    pod = rollout.pod(
        state=waiting(
            "ImagePullBackOff", f'Back-off pulling image "{IMAGE}": ErrImagePull: {NOT_FOUND}'
        )
    )
    events = [
        event(2, "Normal", "Scheduled", "Successfully assigned"),
        event(40, "Warning", "Failed", "Error: ErrImagePull"),
        event(30, "Warning", "Failed", f'Failed to pull image "{IMAGE}": {NOT_FOUND}'),
        event(20, "Normal", "Pulling", f'Pulling image "{IMAGE}"'),
        event(10, "Warning", "Failed", "Error: ImagePullBackOff"),
        event(50, "Warning", "Failed", "of another pod", name="other"),
    ]
    found = of(rollout, pod, events=last_events(events, pod["metadata"]["name"]))
    assert message(found, diagnose(found), LAST_WORDS) == GOLDEN


def test_the_long_message_of_a_pull_is_quoted_also_while_the_short_one_stands(
    rollout: Rollout,
) -> None:
    pod = rollout.pod(state=waiting("ImagePullBackOff", "Back-off pulling image"))
    found = of(rollout, pod, pull_messages={"orchestrator": NOT_FOUND})
    text = message(found, None, "x")
    assert f"      Back-off pulling image\n      {NOT_FOUND}\n" in text


def test_the_pod_of_before_is_said_to_serve(rollout: Rollout) -> None:
    found = Evidence(workload=rollout.workload, still_serving="jr2-orchestrator-old")
    assert (
        "  pod jr2-orchestrator-old of the revision before still serves; nothing was published"
        in message(found, None, "x")
    )


def test_a_rollout_without_a_pod_names_selector_and_reason(rollout: Rollout) -> None:
    notes = no_pod_notes(rollout.workload, matching=0, terminating=0, refused="FailedCreate: quota")
    assert notes == (
        "no pod matches app=jr2-orchestrator — the ReplicaSet made none "
        "(check quota, node taints, and the selector)",
        "the ReplicaSet says FailedCreate: quota",
    )
    beside_old = no_pod_notes(rollout.workload, matching=1, terminating=0, refused="")
    assert beside_old[0].startswith("the new revision made no pod — the ReplicaSet made none")
    going = no_pod_notes(rollout.workload, matching=2, terminating=2, refused="")
    assert going == ("every pod that matches app=jr2-orchestrator is terminating",)


def test_at_most_three_pods_are_shown_and_those_that_are_not_ready_first(rollout: Rollout) -> None:
    made = [rollout.pod(name=f"pod-{number}", ready=number < 2) for number in range(5)]
    shown, hidden = chosen_pods(made)
    assert [pod["metadata"]["name"] for pod in shown] == ["pod-2", "pod-3", "pod-4"]
    assert hidden == 2


def test_a_crash_shows_the_log_and_the_exit(rollout: Rollout) -> None:
    init = {
        "restartCount": 3,
        "state": waiting("CrashLoopBackOff", "back-off 40s restarting failed container"),
        "lastState": {"terminated": {"reason": "Error", "exitCode": 127}},
    }
    pod = rollout.pod(init=init, state=waiting("PodInitializing"))
    log = LogTail(container="preflight", previous=True, lines=("sh: jr2: not found",))
    found = of(rollout, pod, log=log)
    text = message(found, diagnose(found), "x")
    assert "    init container preflight: CrashLoopBackOff, restarted 3 times\n" in text
    assert "      last exit: Error (exit 127)\n" in text
    assert "    log of container preflight (the run before):\n      sh: jr2: not found\n" in text
    assert (
        "diagnosis: jr2-orchestrator-5cd48ff77f-m7qhw starts and exits: its init container "
        "preflight ended with 127.\n  the log lines above are its last words."
    ) in text


@pytest.mark.parametrize(
    ("state", "known", "starts", "holds"),
    [
        (
            waiting("CrashLoopBackOff"),
            {
                "log": LogTail(
                    container="orchestrator", previous=False, lines=("exec format error",)
                )
            },
            "diagnosis: jr2-orchestrator-5cd48ff77f-m7qhw carries an image built for another platform",
            "(amd64)",
        ),
        (
            {"terminated": {"reason": "Error", "exitCode": 3}},
            {},
            "diagnosis: jr2-orchestrator-5cd48ff77f-m7qhw starts and exits: its container "
            "orchestrator ended with 3.",
            "kubectl -n my-instance logs jr2-orchestrator-5cd48ff77f-m7qhw -c orchestrator --previous",
        ),
        (
            waiting("CreateContainerConfigError", 'secret "missing" not found'),
            {},
            'diagnosis: the pod\'s env references Secret "missing"',
            "namespace my-instance",
        ),
        (
            waiting("CreateContainerConfigError", 'configmap "settings" not found'),
            {},
            'diagnosis: the pod\'s env references ConfigMap "settings"',
            "make it",
        ),
        (
            waiting("CreateContainerConfigError", "couldn't find key K in Secret my-instance/s"),
            {},
            'diagnosis: the pod\'s env references Secret "s"',
            "no key K",
        ),
        (
            waiting(
                "CreateContainerConfigError", "container has runAsNonRoot and image runs as root"
            ),
            {},
            "diagnosis: the container's configuration cannot be built",
            "the message of container orchestrator above says why",
        ),
        (
            waiting("ContainerCreating"),
            {
                "failed_mount": 'MountVolume.SetUp failed for volume "held" : configmap "x" not found'
            },
            "diagnosis: the container's configuration cannot be built",
            'its volume "held" needs ConfigMap "x", which is not in namespace my-instance',
        ),
        (
            waiting("ContainerCreating"),
            {
                "failed_mount": 'MountVolume.SetUp failed for volume "v" : '
                "references non-existent secret key: token"
            },
            "diagnosis: the container's configuration cannot be built",
            'its volume "v" needs the key token of a Secret',
        ),
    ],
)
def test_the_known_causes_are_explained(
    rollout: Rollout, state: dict[str, Any], known: dict[str, Any], starts: str, holds: str
) -> None:
    text = diagnose(of(rollout, rollout.pod(state=state, restarts=2), **known))
    assert text is not None
    assert text.startswith(starts)
    assert holds in text


def test_what_is_not_known_is_not_explained(rollout: Rollout) -> None:
    assert diagnose(of(rollout, rollout.pod())) is None


@pytest.mark.parametrize(
    ("ref", "address"),
    [
        ("jr2-sandbox-x:1", "docker.io/library/jr2-sandbox-x:1"),
        ("team/image:1", "docker.io/team/image:1"),
        ("localhost/image:1", "localhost/image:1"),
        ("registry:5000/image:1", "registry:5000/image:1"),
        ("ghcr.io/snapwich/jr2-harness:1", "ghcr.io/snapwich/jr2-harness:1"),
    ],
)
def test_a_ref_resolves_as_a_node_resolves_it(ref: str, address: str) -> None:
    assert resolved(ref) == address


def test_a_pod_that_was_evicted_says_why(rollout: Rollout) -> None:
    pod = rollout.pod(phase="Failed")
    pod["status"] |= {"reason": "Evicted", "message": "The node was low on resource: memory."}
    assert "    Evicted: The node was low on resource: memory.\n" in message(
        of(rollout, pod), None, "x"
    )


def test_the_container_that_failed_speaks_for_the_pod_that_waits_for_it(rollout: Rollout) -> None:
    pod = rollout.pod(state={"running": {}}, phase="Running")
    pod["spec"]["containers"].append({"name": "worker", "image": IMAGE})
    pod["status"]["containerStatuses"].append(
        {"name": "worker", "restartCount": 2, "state": waiting("CrashLoopBackOff")}
    )
    found = pods.spokesman(pod)
    assert found is not None
    assert found.name == "worker"


def test_only_the_container_that_cannot_run_is_of_another_platform(rollout: Rollout) -> None:
    pod = rollout.pod(state=waiting("ContainerCreating"))
    pod["spec"]["containers"].append({"name": "worker", "image": "other:1"})
    pod["status"]["containerStatuses"].append(
        {
            "name": "worker",
            "restartCount": 2,
            "state": waiting("CrashLoopBackOff"),
            "lastState": {"terminated": {"exitCode": 128, "message": "exec format error"}},
        }
    )
    text = diagnose(of(rollout, pod))
    assert text is not None
    assert "carries an image built for another platform" in text
    assert "the image is other:1" in text
