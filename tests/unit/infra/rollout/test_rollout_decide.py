"""A rollout is judged from one observation to the next (field case 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from jr2_infra.rollout.decide import Observation, Progress, Verdict, judge, left_over

if TYPE_CHECKING:
    from tests.unit.infra.rollout.conftest import Rollout

IMAGE = "registry.example/jr2-orchestrator:1.0.0"
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
    assert progress.refused == f"FailedCreate: {message}"


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


@pytest.mark.parametrize("has_probe", [True, False])
def test_a_status_of_a_moment_ago_does_not_make_a_pod_well(
    rollout: Rollout, has_probe: bool
) -> None:
    ended = rollout.pod(
        state={"terminated": {"reason": "Error", "exitCode": 3}},
        phase="Running",
        ready=not has_probe,
    )
    if not has_probe:
        del ended["spec"]["containers"][0]["readinessProbe"]
    seen = rollout.seen(ended, deployment=rollout.deployment(complete=True))
    assert watch(*[seen] * 9)[1].state == "waiting"


@pytest.mark.parametrize(
    "ended",
    [
        {"terminated": {"reason": "Error", "exitCode": 3}},
        {"terminated": {"reason": "Completed", "exitCode": 0}},
        waiting("RunContainerError", "no such file or directory"),
    ],
)
def test_a_crash_loop_is_one_also_while_the_api_shows_how_it_ended(
    rollout: Rollout, ended: dict[str, Any]
) -> None:
    once = rollout.seen(rollout.pod(state=ended, restarts=1))
    twice = rollout.seen(rollout.pod(state=ended, restarts=2))
    _, verdict, count = watch(once, once, twice)
    assert (verdict.state, verdict.reason, count) == ("failed", "CrashLoopBackOff", 3)


def test_a_container_without_a_probe_must_stay(rollout: Rollout) -> None:
    def seen(restarts: int) -> Observation:
        pod = rollout.pod(ready=True, state={"running": {}}, phase="Running", restarts=restarts)
        del pod["spec"]["containers"][0]["readinessProbe"]
        return rollout.seen(pod, deployment=rollout.deployment(complete=True))

    assert watch(*[seen(0)] * 9)[1:] == (Verdict(state="done"), 3)
    # It ran at each look, but it ended in between.
    assert watch(seen(0), seen(0), seen(1), seen(1))[1].state == "waiting"
    _, verdict, count = watch(seen(0), *[seen(1)] * 9)
    assert (verdict.state, count) == ("done", 7)


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


# --- only the newest revision -------------------------------------------------------------------
def test_a_crash_loop_of_the_revision_before_is_not_judged(rollout: Rollout) -> None:
    crashed = rollout.pod(hash="old", state=waiting("CrashLoopBackOff"), restarts=9)
    # First the controller has not seen the change, then it has made no ReplicaSet of it yet.
    unseen = rollout.deployment()
    unseen["metadata"]["generation"] = 3
    before = rollout.seen(crashed, deployment=unseen)
    no_set = Observation(
        workload=rollout.deployment(), revisions=rollout.replica_sets()[:1], pods=[crashed]
    )
    _, verdict, count = watch(*[before] * 5, *[no_set] * 20)
    assert (verdict.state, count) == ("waiting", 25)


def test_the_newest_replica_set_is_the_one_with_the_same_template(rollout: Rollout) -> None:
    rolled_back = rollout.deployment()
    rolled_back["spec"]["template"] = rollout.template("registry.example/jr2-orchestrator:0.9.0")
    # What says nothing is written in one place and left out in the other.
    rolled_back["spec"]["template"]["metadata"] |= {"creationTimestamp": None, "annotations": {}}
    seen = rollout.seen(rollout.pod(hash="old"), rollout.pod(hash="new"), deployment=rolled_back)
    assert [pod["metadata"]["labels"]["pod-template-hash"] for pod in seen.made] == ["old"]


def test_a_daemon_set_is_judged_by_its_newest_revision(rollout: Rollout) -> None:
    daemon_set = rollout.daemon_set()
    kept = [
        rollout.controller_revision("b", 12, of=daemon_set),
        rollout.controller_revision("a", 9, of=daemon_set),
    ]
    old = rollout.labelled(rollout.pod(name="old", state=waiting("ImagePullBackOff")), "a")
    new = rollout.labelled(rollout.pod(name="new", state=waiting("ImagePullBackOff")), "b")

    def seen(*found: dict[str, Any]) -> Observation:
        return Observation(workload=daemon_set, revisions=kept, pods=found)

    assert watch(*[seen(old)] * 9)[1].state == "waiting"
    assert watch(*[seen(old, new)] * 9)[1:] == (
        Verdict(state="failed", reason="ImagePullBackOff"),
        3,
    )


def test_a_stateful_set_is_judged_by_the_revision_that_its_status_names(rollout: Rollout) -> None:
    stateful_set = rollout.stateful_set()
    kept = [
        rollout.controller_revision("new", 1, of=stateful_set),
        rollout.controller_revision("old", 2, of=stateful_set),
    ]
    old = rollout.labelled(
        rollout.pod(name="harness-0", state=waiting("CrashLoopBackOff"), restarts=5), "harness-old"
    )
    new = rollout.labelled(
        rollout.pod(name="harness-0", state=waiting("CrashLoopBackOff"), restarts=5), "harness-new"
    )

    def seen(pod: dict[str, Any]) -> Observation:
        return Observation(workload=stateful_set, revisions=kept, pods=[pod])

    assert watch(*[seen(old)] * 9)[1].state == "waiting"
    assert watch(seen(new))[1].reason == "CrashLoopBackOff"


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"observedGeneration": 1},
        {"updatedNumberScheduled": 0},
        {"numberAvailable": 0},
        {"desiredNumberScheduled": 2},
    ],
)
def test_a_daemon_set_is_complete_when_each_node_runs_the_new_pod(
    rollout: Rollout, status: dict[str, int]
) -> None:
    seen = Observation(workload=rollout.daemon_set(complete=True, **status))
    assert watch(seen)[1].state == ("waiting" if status else "done")


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"observedGeneration": 1},
        {"readyReplicas": 0},
        {"replicas": 2},
        {"currentRevision": "harness-old"},
    ],
)
def test_a_stateful_set_is_complete_when_its_update_is_current(
    rollout: Rollout, status: dict[str, Any]
) -> None:
    seen = Observation(workload=rollout.stateful_set(complete=True, **status))
    assert watch(seen)[1].state == ("waiting" if status else "done")


def test_a_daemon_set_without_a_node_is_complete(rollout: Rollout) -> None:
    none = rollout.daemon_set(desiredNumberScheduled=0, updatedNumberScheduled=0, numberAvailable=0)
    assert watch(Observation(workload=none))[1].state == "done"


# --- events -------------------------------------------------------------------------------------
def test_an_event_says_that_a_stateful_set_may_make_no_pod(rollout: Rollout) -> None:
    stateful_set = rollout.stateful_set()
    kept = [rollout.controller_revision("new", 1, of=stateful_set)]
    refused = rollout.event(
        10, "FailedCreate", "create Pod harness-0 failed error: exceeded quota: q", of=stateful_set
    )
    made = rollout.event(20, "SuccessfulCreate", "create Pod harness-0", of=stateful_set)

    def seen(*events: dict[str, Any]) -> Observation:
        return Observation(workload=stateful_set, revisions=kept, events=events)

    progress, verdict, count = watch(*[seen(refused)] * 9)
    assert (verdict.state, verdict.reason, count) == ("failed", "FailedCreate", 5)
    assert "exceeded quota: q" in progress.refused
    assert watch(*[seen(made, refused)] * 9)[1].state == "waiting"


def test_a_volume_of_a_missing_object_fails_unless_it_heals(rollout: Rollout) -> None:
    pod = rollout.pod()
    text = 'MountVolume.SetUp failed for volume "held" : configmap "held" not found'
    missing = rollout.event(10, "FailedMount", text, of=pod)
    pulling = rollout.event(12, "Pulling", f'Pulling image "{IMAGE}"', of=pod)

    broken, healed = (
        rollout.seen(pod, events=[missing]),
        rollout.seen(pod, events=[pulling, missing]),
    )
    assert watch(*[broken] * 9)[1:] == (Verdict(state="failed", reason="FailedMount"), 5)
    _, verdict, count = watch(*[broken] * 4, *[healed] * 9)
    assert (verdict.state, verdict.pulling, count) == ("waiting", (IMAGE,), 13)
    other = rollout.event(10, "FailedMount", "timed out waiting for the volume", of=pod)
    assert watch(*[rollout.seen(pod, events=[other])] * 9)[1].state == "waiting"


def test_an_image_is_pulled_until_an_event_says_otherwise(rollout: Rollout) -> None:
    pod = rollout.pod()
    place = "spec.containers{orchestrator}"
    start = rollout.event(10, "Pulling", f'Pulling image "{IMAGE}"', of=pod, place=place)
    same_second = rollout.event(10, "Pulled", "Successfully pulled image", of=pod, place=place)
    of_init = rollout.event(
        9, "Pulled", "Successfully pulled image", of=pod, place="spec.initContainers{preflight}"
    )
    assert watch(rollout.seen(pod, events=[start, of_init]))[1].pulling == (IMAGE,)
    assert watch(rollout.seen(pod, events=[same_second, start]))[1].pulling == ()
    running = rollout.pod(state={"running": {}}, phase="Running")
    assert watch(rollout.seen(running, events=[start]))[1].pulling == ()


# --- what an earlier rollout left ---------------------------------------------------------------
def test_an_old_trouble_is_left_over_and_a_new_one_is_not(rollout: Rollout) -> None:
    pod = rollout.pod(state=waiting("ImagePullBackOff"))
    pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:10Z"
    seen = rollout.seen(pod)
    assert left_over(seen, before="2026-01-01T00:00:11Z") == "ImagePullBackOff"
    assert left_over(seen, before="2026-01-01T00:00:10Z") == ""
    done = rollout.seen(pod, deployment=rollout.deployment(complete=True))
    assert left_over(done, before="2026-01-01T00:00:11Z") == ""


def test_a_pod_that_was_never_made_is_left_over_too(rollout: Rollout) -> None:
    deployment = rollout.deployment(failure="exceeded quota")
    deployment["status"]["conditions"][0]["lastTransitionTime"] = "2026-01-01T00:00:10Z"
    seen = rollout.seen(deployment=deployment)
    assert left_over(seen, before="2026-01-01T00:00:11Z") == "FailedCreate"
    assert left_over(seen, before="2026-01-01T00:00:09Z") == ""
