"""The wait for a rollout, against an API server that speaks HTTP and a kubectl that is played."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from jr2.errors import StepFailed
from jr2_infra.api import Api, ApiError
from jr2_infra.rollout.wait import wait
from jr2_infra.rollout.workload import Workload

if TYPE_CHECKING:
    from tests.unit.infra.rollout.conftest import Rollout


IMAGE = "registry.example/jr2-orchestrator:1.0.0"


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

    def __init__(self, clock: Clock, *, has_words: bool = True) -> None:
        self._clock = clock
        self._limit = clock.now + 180 if has_words else float("inf")
        self.stopped = False

    def last_words(self) -> str | None:
        if self._clock.now < self._limit:
            return None
        return "Command failed: kubectl\nerror: timed out"

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
            return rollout.replica_sets()
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


def run(
    server: Api,
    workload: Workload,
    *,
    clock: Clock | None = None,
    has_words: bool = True,
    check_lease: Callable[[], None] = lambda: None,
    began: str = "2026-01-01T00:09:45Z",
) -> tuple[list[str], list[FakeKubectl], Clock, str]:
    said: list[str] = []
    shown: list[str | None] = []
    clock = clock or Clock()
    started: list[FakeKubectl] = []

    def kubectl(_: Workload) -> FakeKubectl:
        started.append(FakeKubectl(clock, has_words=has_words))
        return started[-1]

    error = ""
    try:
        wait(
            server,
            workload,
            say=said.append,
            progress=shown.append,
            kubectl=kubectl,
            check_lease=check_lease,
            began=began,
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


def test_a_log_that_the_kubelet_no_longer_has_is_not_quoted(rollout: Rollout) -> None:
    pod = rollout.pod(state={"terminated": {"reason": "Error", "exitCode": 3}}, restarts=2)

    def answer(path: str) -> Any:
        if path.endswith("/log"):
            return "unable to retrieve container logs for containerd://f068e3"
        return answers(rollout, rollout.deployment(), pod)(path)

    error = run(api(answer), rollout.workload)[3]
    assert "unable to retrieve" not in error
    assert "  it left no log line; once it has started again: kubectl -n my-instance logs" in error


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


def test_a_kubectl_without_words_leaves_the_limit_to_ours(rollout: Rollout) -> None:
    server = api(answers(rollout, rollout.deployment(), rollout.pod()))
    _, _, clock, error = run(server, rollout.workload, has_words=False)
    assert clock.now == 186
    assert error.endswith(
        "stopped after 186s: the limit of 180s passed "
        "(jr2-orchestrator-5cd48ff77f-m7qhw: orchestrator ContainerCreating)"
    )


# --- an image that is pulled for minutes --------------------------------------------------------
def pulled(rollout: Rollout, clock: Clock, until: float, ready: float) -> Callable[[str], Any]:
    """An API whose pod pulls until a time and is ready at another."""
    pod = rollout.pod()
    place = "spec.containers{orchestrator}"
    events = [rollout.event(1, "Pulling", f'Pulling image "{IMAGE}"', of=pod, place=place)]

    def answer(path: str) -> Any:
        if clock.now >= until and len(events) == 1:
            events.append(rollout.event(2, "Pulled", "Successfully pulled", of=pod, place=place))
        is_ready = clock.now >= ready
        if path.endswith("/events"):
            return events
        if path.endswith("/pods"):
            running = rollout.pod(ready=True, state={"running": {}}, phase="Running")
            return [running if is_ready else pod]
        return answers(rollout, rollout.deployment(complete=is_ready))(path)

    return answer


def test_a_pull_of_minutes_does_not_use_up_the_limit(rollout: Rollout) -> None:
    clock = Clock()
    said, started, _, error = run(
        api(pulled(rollout, clock, until=190, ready=360)), rollout.workload, clock=clock
    )
    assert error == ""
    assert said == [
        "orchestrator: waiting for rollout",
        *(f"orchestrator: pulling {IMAGE} — {seconds}s" for seconds in range(30, 190, 30)),
        f"orchestrator: verified — 1 pod(s) running {IMAGE}",
    ]
    # kubectl began with the limit: when the pull was over.
    assert [item.stopped for item in started] == [True]


def test_a_pull_has_a_limit_of_its_own(rollout: Rollout) -> None:
    clock = Clock()
    _, _, _, error = run(
        api(pulled(rollout, clock, until=9999, ready=9999)), rollout.workload, clock=clock
    )
    assert clock.now == 1800
    assert error.endswith(f"stopped after 1800s: the image is still being pulled ({IMAGE})")


# --- an API server that fails -------------------------------------------------------------------
def test_an_api_server_that_is_away_for_a_moment_does_not_end_the_wait(rollout: Rollout) -> None:
    clock = Clock()
    pod = rollout.pod(ready=True, state={"running": {}}, phase="Running")

    def handle(request: httpx2.Request) -> httpx2.Response:
        if clock.now < 10:
            raise httpx2.ConnectError("connection refused")
        if clock.now < 20:
            return httpx2.Response(503, json={"message": "shutting down"})
        found = answers(rollout, rollout.deployment(complete=True), pod)(request.url.path)
        return httpx2.Response(200, json={"items": found} if isinstance(found, list) else found)

    server = Api(httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(handle)))
    said, _, _, error = run(server, rollout.workload, clock=clock)
    assert (said[-1], error) == (f"orchestrator: verified — 1 pod(s) running {IMAGE}", "")


def test_an_api_server_that_stays_away_ends_the_wait(rollout: Rollout) -> None:
    clock = Clock()

    def handle(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("connection refused")

    server = Api(httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(handle)))
    with pytest.raises(httpx2.ConnectError):
        run(server, rollout.workload, clock=clock)
    assert clock.now == 30


def test_a_read_that_is_refused_ends_the_wait_at_once(rollout: Rollout) -> None:
    clock = Clock()

    def handle(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(403, json={"message": "pods is forbidden", "reason": "Forbidden"})

    server = Api(httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(handle)))
    with pytest.raises(ApiError, match="pods is forbidden"):
        run(server, rollout.workload, clock=clock)
    assert clock.now == 0


# --- what an earlier rollout left ---------------------------------------------------------------
class Left:
    """An API whose pod failed minutes ago, and is well after a restart of the rollout."""

    def __init__(self, rollout: Rollout, *, heals: bool, created: str) -> None:
        self.rollout = rollout
        self.heals = heals
        self.broken = rollout.pod(state={"waiting": {"reason": "ImagePullBackOff"}})
        self.broken["metadata"]["creationTimestamp"] = created
        self.patches: list[tuple[str, str, Any]] = []

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        if request.method == "PATCH":
            self.patches.append(
                (path, request.url.params["fieldManager"], json.loads(request.content))
            )
            return httpx2.Response(200, json={})
        if path == "/version":
            return httpx2.Response(200, json={}, headers={"Date": "Thu, 01 Jan 2026 00:10:00 GMT"})
        well = bool(self.patches) and self.heals
        pod = self.rollout.pod(ready=True, state={"running": {}}) if well else self.broken
        found = answers(self.rollout, self.rollout.deployment(complete=well), pod)(path)
        if isinstance(found, str):
            return httpx2.Response(200, text=found)
        return httpx2.Response(200, json={"items": found} if isinstance(found, list) else found)

    def api(self) -> Api:
        return Api(
            httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(self.handle))
        )


@pytest.mark.parametrize("created", ["2026-01-01T00:01:00Z", "2026-01-01T00:09:44Z"])
def test_an_old_failure_is_started_anew_once_also_one_of_a_second_ago(
    rollout: Rollout, created: str
) -> None:
    left = Left(rollout, heals=True, created=created)
    checked: list[int] = []
    said, _, clock, error = run(
        left.api(), rollout.workload, check_lease=lambda: checked.append(len(left.patches))
    )
    assert (error, clock.now) == ("", 0)
    assert said[1] == (
        "orchestrator: an earlier rollout ended with ImagePullBackOff — starting its pods again"
    )
    annotations = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:10:00Z"}
    assert left.patches == [
        (
            "/apis/apps/v1/namespaces/my-instance/deployments/jr2-orchestrator",
            "kubectl-rollout",
            {"spec": {"template": {"metadata": {"annotations": annotations}}}},
        )
    ]
    # The Lease was checked before the write.
    assert checked == [0]


def test_a_failure_that_comes_back_ends_the_rollout(rollout: Rollout) -> None:
    left = Left(rollout, heals=False, created="2026-01-01T00:01:00Z")
    _, _, clock, error = run(left.api(), rollout.workload)
    assert len(left.patches) == 1
    assert clock.now == 4
    assert error.endswith("stopped after 4s: ImagePullBackOff does not heal by waiting")


def test_a_failure_of_this_run_is_not_started_anew(rollout: Rollout) -> None:
    left = Left(rollout, heals=False, created="2026-01-01T00:09:50Z")
    _, _, _, error = run(left.api(), rollout.workload)
    assert left.patches == []
    assert error.endswith("ImagePullBackOff does not heal by waiting")


def test_a_run_that_lost_its_lease_starts_nothing_anew(rollout: Rollout) -> None:
    left = Left(rollout, heals=True, created="2026-01-01T00:01:00Z")

    def lost() -> None:
        raise StepFailed("the Lease is another's")

    _, _, _, error = run(left.api(), rollout.workload, check_lease=lost)
    assert (left.patches, error) == ([], "error: the Lease is another's")
