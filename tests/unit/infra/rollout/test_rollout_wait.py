"""The wait for a rollout, against an API server that speaks HTTP and a kubectl that is played."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from jr2.errors import StepFailed
from jr2_infra.api import Api
from jr2_infra.rollout.decide import Workload
from jr2_infra.rollout.wait import wait

if TYPE_CHECKING:
    from tests.unit.infra.rollout.conftest import Rollout


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class FakeKubectl:
    """A `kubectl rollout status` that gives up when its limit passed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.stopped = False

    def last_words(self) -> str | None:
        return "Command failed: kubectl\nerror: timed out" if self._clock.now >= 180 else None

    def stop(self) -> None:
        self.stopped = True


def api(answers: Callable[[str], Any]) -> Api:
    def handle(request: httpx2.Request) -> httpx2.Response:
        found = answers(request.url.path)
        if isinstance(found, str):
            return httpx2.Response(200, text=found)
        if found is None:
            return httpx2.Response(404, json={"message": "not found"})
        if isinstance(found, list):
            return httpx2.Response(200, content=json.dumps({"items": found}))
        return httpx2.Response(200, json=found)

    return Api(httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(handle)))


def answers(
    rollout: Rollout, deployment: dict[str, Any], *found: dict[str, Any]
) -> Callable[[str], Any]:
    def answer(path: str) -> Any:
        if path.endswith("/deployments/jr2-orchestrator"):
            return deployment
        if path.endswith("/replicasets"):
            return [rollout.replica_set("1", "old"), rollout.replica_set()]
        if path.endswith("/pods"):
            return list(found)
        if path.endswith("/log"):
            return "Traceback\nboom\n"
        if path.endswith("/events"):
            return []
        if path.endswith("/nodes/jr2-control-plane"):
            return {"metadata": {"labels": {"kubernetes.io/arch": "arm64"}}}
        return None

    return answer


def run(server: Api, workload: Workload) -> tuple[list[str], list[FakeKubectl], Clock, str]:
    said: list[str] = []
    shown: list[str | None] = []
    clock = Clock()
    started: list[FakeKubectl] = []

    def kubectl(_: Workload) -> FakeKubectl:
        started.append(FakeKubectl(clock))
        return started[-1]

    error = ""
    try:
        wait(
            server,
            workload,
            say=said.append,
            progress=shown.append,
            kubectl=kubectl,
            sleep=clock.sleep,
            clock=clock,
        )
    except StepFailed as failed:
        error = failed.printed
    assert shown[-1] is None
    assert len(shown) == 1 + len([item for item in shown if item])
    return said, started, clock, error


def test_a_rollout_that_is_complete_is_verified_at_once(rollout: Rollout) -> None:
    pod = rollout.pod(ready=True, state={"running": {}}, phase="Running")
    said, started, clock, error = run(
        api(answers(rollout, rollout.deployment(complete=True), pod)), rollout.workload
    )
    assert said == [
        "orchestrator: waiting for rollout",
        "orchestrator: verified — 1 pod(s) running registry.example/jr2-orchestrator:1.0.0",
    ]
    assert (started, clock.now, error) == ([], 0.0, "")


def test_a_crash_loop_ends_early_with_its_log_and_stops_kubectl(rollout: Rollout) -> None:
    pod = rollout.pod(
        state={"waiting": {"reason": "CrashLoopBackOff"}},
        restarts=1,
        last={"reason": "Error", "exitCode": 1},
    )
    looks = iter(range(1, 100))

    def answer(path: str) -> Any:
        if path.endswith("/pods"):
            pod["status"]["containerStatuses"][0]["restartCount"] = next(looks)
        return answers(rollout, rollout.deployment(), pod)(path)

    _, started, clock, error = run(api(answer), rollout.workload)
    assert error.startswith(
        "error: jr2-orchestrator: rollout did not complete in namespace my-instance — the pods say:"
    )
    assert "on node jr2-control-plane (arm64)" in error
    assert "      Traceback\n      boom\n" in error
    assert error.endswith("stopped after 2s: CrashLoopBackOff does not heal by waiting")
    assert clock.now == 2.0
    assert [item.stopped for item in started] == [True]


def test_the_limit_ends_with_the_words_of_kubectl(rollout: Rollout) -> None:
    _, started, clock, error = run(
        api(answers(rollout, rollout.deployment(), rollout.pod())), rollout.workload
    )
    assert clock.now == 180
    assert error.endswith("Command failed: kubectl\nerror: timed out")
    assert started[0].stopped


def test_another_image_in_a_complete_rollout_is_an_error(rollout: Rollout) -> None:
    pod = rollout.pod(ready=True, state={"running": {}}, phase="Running")
    pod["spec"]["containers"][0]["image"] = "registry.example/other:1"
    _, _, _, error = run(
        api(answers(rollout, rollout.deployment(complete=True), pod)), rollout.workload
    )
    assert error == (
        "error: orchestrator: rollout reported success, but the running pod carries "
        "registry.example/other:1 — expected registry.example/jr2-orchestrator:1.0.0. The cluster "
        "is serving code this converge did not deploy; `kubectl -n my-instance rollout restart "
        "deploy` and re-run `jr2 up` to resolve it."
    )


def test_a_rollout_that_no_pod_proves_says_so_and_goes_on(rollout: Rollout) -> None:
    said, _, _, error = run(
        api(answers(rollout, rollout.deployment(complete=True))), rollout.workload
    )
    assert error == ""
    assert said[-1] == (
        "orchestrator: WARNING — rollout succeeded but no pod matched app=jr2-orchestrator "
        "(nothing verified)"
    )


@pytest.mark.parametrize(
    "message", ["exceeded quota: team-quota", "violates PodSecurity (container orchestrator)"]
)
def test_no_pod_of_the_new_revision_is_not_the_picture_of_the_old_one(
    rollout: Rollout, message: str
) -> None:
    server = api(answers(rollout, rollout.deployment(failure=message), rollout.old_pod()))
    _, _, clock, error = run(server, rollout.workload)
    assert f"  the ReplicaSet says FailedCreate: {message}" in error
    assert "  pod jr2-orchestrator-old of the revision before still serves" in error
    assert "(Running) on node" not in error
    assert clock.now == 8.0
