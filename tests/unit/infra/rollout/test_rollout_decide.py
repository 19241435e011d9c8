"""A rollout is judged from one observation to the next (field case 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jr2_infra.rollout.decide import Observation, Progress, Verdict, judge

if TYPE_CHECKING:
    from tests.unit.infra.rollout.conftest import Rollout

LONG = 'failed to pull "registry.example/jr2-orchestrator:1.0.0": not found'


def watch(*seen: Observation) -> tuple[Progress, Verdict, int]:
    """Judge observations until one of them ends the rollout; say how many it took."""
    progress, verdict, count = Progress(), Verdict(state="waiting"), 0
    for observation in seen:
        progress, verdict = judge(progress, observation)
        count += 1
        if verdict.state != "waiting":
            break
    return progress, verdict, count


def waiting(reason: str, message: str = "") -> dict[str, dict[str, str]]:
    return {"waiting": {"reason": reason, "message": message}}


def test_a_pull_that_alternates_its_reason_fails_within_three_observations(
    rollout: Rollout,
) -> None:
    seen = [
        rollout.seen(
            rollout.old_pod(),
            rollout.pod(
                state=waiting("ErrImagePull", LONG)
                if number % 2
                else waiting("ImagePullBackOff", "Back-off pulling image")
            ),
        )
        for number in range(9)
    ]
    progress, verdict, count = watch(*seen)
    assert (verdict.state, count) == ("failed", 3)
    assert LONG in progress.pull_messages.values()


def test_a_pull_that_heals_between_two_looks_is_no_failure(rollout: Rollout) -> None:
    bad = rollout.seen(rollout.pod(state=waiting("ErrImagePull", LONG)))
    good = rollout.seen(rollout.pod())
    _, verdict, count = watch(bad, bad, good, bad, bad, good)
    assert (verdict.state, count) == ("waiting", 6)


@pytest.mark.parametrize(
    "message",
    [
        'pods "x" is forbidden: exceeded quota: team-quota, requested limits.cpu=2, used 7',
        'violates PodSecurity "restricted": allowPrivilegeEscalation != false (container orchestrator)',
    ],
)
def test_a_revision_without_a_pod_fails_while_the_old_pod_serves(
    rollout: Rollout, message: str
) -> None:
    stuck = rollout.seen(rollout.old_pod(), deployment=rollout.deployment(failure=message))
    progress, verdict, count = watch(*[stuck] * 10)
    assert (verdict.state, verdict.reason, count) == ("failed", "FailedCreate", 5)
    assert progress.replica_failure == f"FailedCreate: {message}"


def test_a_container_that_restarted_once_and_is_ready_is_done(rollout: Rollout) -> None:
    exited = rollout.seen(
        rollout.pod(state={"terminated": {"reason": "Error", "exitCode": 1}}, phase="Running")
    )
    running = rollout.pod(state={"running": {}}, ready=True, restarts=1, phase="Running")
    done = rollout.seen(running, deployment=rollout.deployment(complete=True))
    _, verdict, _ = watch(exited, rollout.seen(rollout.pod()), done)
    assert verdict.state == "done"
    assert verdict.restarted == (
        "container orchestrator of pod jr2-orchestrator-5cd48ff77f-m7qhw restarted once",
    )


def test_a_crash_loop_fails_once_it_is_one(rollout: Rollout) -> None:
    once = rollout.seen(rollout.pod(state=waiting("CrashLoopBackOff"), restarts=1))
    twice = rollout.seen(rollout.pod(state=waiting("CrashLoopBackOff"), restarts=2))
    _, verdict, count = watch(once, once, once, twice)
    assert (verdict.state, verdict.reason, count) == ("failed", "CrashLoopBackOff", 4)


def test_an_init_container_that_crashes_fails_the_rollout(rollout: Rollout) -> None:
    init = {"restartCount": 2, "state": waiting("CrashLoopBackOff")}
    pod = rollout.pod(init=init, state=waiting("PodInitializing"))
    _, verdict, _ = watch(rollout.seen(pod))
    assert verdict.state == "failed"


def test_a_pod_that_no_node_takes_is_waited_for(rollout: Rollout) -> None:
    seen = rollout.seen(rollout.pod(state=waiting("Unschedulable")))
    _, verdict, count = watch(*[seen] * 50)
    assert (verdict.state, count) == ("waiting", 50)


@pytest.mark.parametrize(
    "status",
    [
        {"observedGeneration": 1},
        {"updatedReplicas": 0},
        {"replicas": 2},
        {"availableReplicas": 0},
    ],
)
def test_the_picture_of_the_revision_before_is_not_complete(
    rollout: Rollout, status: dict[str, int]
) -> None:
    deployment = rollout.deployment(complete=True)
    deployment["status"] |= status
    _, verdict, _ = watch(rollout.seen(rollout.old_pod(), deployment=deployment))
    assert verdict.state == "waiting"
