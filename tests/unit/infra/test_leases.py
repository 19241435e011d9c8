"""The Leases of one run: both of them fence, and both of them know the engine."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any, cast

import httpx2
import pytest

from jr2 import names
from jr2.errors import StepFailed
from jr2_infra import converge, process_table
from jr2_infra import lease as lease_module
from jr2_infra.leases import held_leases
from jr2_infra.plan import ConvergePlan
from jr2_infra.seen import plan_under
from tests.reporter import Reporter
from tests.waiting import LIMIT

MARK = "/dev/shm/jr2-0-abc/run.json"


class Api:
    """Leases and namespaces as an API server keeps them."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.version = 0
        self.lock = threading.Lock()

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        with self.lock:
            return self._answer(request)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        if request.method == "GET":
            found = self.objects.get(path)
            return httpx2.Response(200, json=found) if found else httpx2.Response(404, json={})
        body = json.loads(request.content)
        if request.method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                return httpx2.Response(409, json={})
        elif request.method == "PUT":
            asked = body["metadata"]["resourceVersion"]
            if self.objects[path]["metadata"]["resourceVersion"] != asked:
                return httpx2.Response(409, json={})
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.objects[path] = body
        return httpx2.Response(200, json=body)

    def lease(self, namespace: str) -> dict[str, Any]:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/jr2-converge"
        return self.objects[path]

    def client(self) -> httpx2.Client:
        return httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(self.answer))


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def http(api: Api) -> Iterator[httpx2.Client]:
    with api.client() as client:
        yield client


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renew in hundredths of a second.

    A watch is as long as a renewal may be late, and on a machine that is busy it is late by far.
    """
    monkeypatch.setattr(lease_module, "RENEW_SECONDS", 0.02)
    monkeypatch.setattr(lease_module, "WATCH_SECONDS", LIMIT)
    monkeypatch.setattr(lease_module, "_LOOK_SECONDS", 0.02)


@pytest.fixture
def engine() -> Iterator[subprocess.Popen[str]]:
    """A session as the engine's is."""
    process = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); import time; time.sleep(3600)"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={"JR2_RUN_FILE": MARK},
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.stdout.close()
    process.wait()


def start_of(process: subprocess.Popen[str]) -> str:
    return process_table.start_of(process.pid) or ""


def ended(process: subprocess.Popen[str]) -> bool:
    process.wait(timeout=LIMIT)
    return process.returncode == -9


def test_the_engine_is_written_down_in_both(api: Api, http: httpx2.Client) -> None:
    with held_leases(http, Reporter()) as leases:
        leases.hold("demo")
        leases.hold_shared()
        leases.record_engine(41, "then", MARK)

        assert f"/api/v1/namespaces/{names.SYSTEM_NAMESPACE}" in api.objects
        nonces = leases.nonces()
        assert [namespace for namespace, _ in nonces] == ["demo", names.SYSTEM_NAMESPACE]
        for namespace, nonce in nonces:
            held = api.lease(namespace)
            assert held["spec"]["holderIdentity"] == nonce
            holder = json.loads(held["metadata"]["annotations"]["jr2.dev/lease-holder"])
            assert (holder["session"], holder["mark"]) == (41, MARK)

    assert "holderIdentity" not in api.lease("demo")["spec"]
    assert "holderIdentity" not in api.lease(names.SYSTEM_NAMESPACE)["spec"]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("lost", ["demo", names.SYSTEM_NAMESPACE])
def test_the_loss_of_either_ends_the_engine(
    api: Api, http: httpx2.Client, engine: subprocess.Popen[str], lost: str
) -> None:
    def converge() -> None:
        with held_leases(http, Reporter()) as leases:
            leases.hold("demo")
            leases.hold_shared()
            leases.record_engine(engine.pid, start_of(engine), MARK)
            with api.lock:
                api.lease(lost)["spec"]["holderIdentity"] = "another"
                api.lease(lost)["metadata"]["resourceVersion"] = "changed"
            assert ended(engine)
            raise StepFailed("the engine ended")

    with pytest.raises(StepFailed, match=f'took over the converge of namespace "{lost}"'):
        converge()


@pytest.mark.usefixtures("quick")
def test_another_instance_that_takes_the_shared_lease_over_ends_what_is_left(
    api: Api, http: httpx2.Client, engine: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command of `demo` was killed; `second` is on the same host and never reads its Lease."""
    # The watch is waited for here.
    monkeypatch.setattr(lease_module, "WATCH_SECONDS", 2.0)
    dead = lease_module.ConvergeLease(http, names.SYSTEM_NAMESPACE)
    dead.acquire(Reporter())
    dead.record_engine(engine.pid, start_of(engine), MARK)
    reporter = Reporter()

    with held_leases(http, reporter) as leases:
        leases.hold("second")
        leases.hold_shared()
        assert ended(engine)

    assert len(reporter.lines) == 1
    assert reporter.lines[0].startswith("lease: taken over from ")


def test_the_namespace_that_a_shared_lease_needs_counts_as_written(
    api: Api, http: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converge, "_writes", threading.Event())
    with held_leases(http, Reporter()) as leases:
        leases.hold("demo")
        assert not converge.has_written()

        leases.hold_shared()

        assert converge.has_written()


class Plan:
    def __init__(self, *, writes_shared: bool) -> None:
        self.writes_shared = writes_shared


def plan(*, writes_shared: bool) -> ConvergePlan:
    return cast(ConvergePlan, Plan(writes_shared=writes_shared))


@pytest.mark.parametrize(
    ("first", "later", "reads", "shares"),
    [
        (False, [False], 1, False),
        (True, [True], 1, True),
        (True, [False], 1, True),
        (False, [True, True], 2, True),
        (False, [True, False], 2, True),
    ],
)
def test_a_plan_that_writes_shared_objects_was_made_under_their_lease(
    http: httpx2.Client, first: bool, later: list[bool], reads: int, shares: bool
) -> None:
    held: list[bool] = []
    answers = [plan(writes_shared=writes) for writes in later]
    with held_leases(http, Reporter()) as leases:
        leases.hold("demo")

        def plan_again() -> ConvergePlan:
            held.append(leases.shares)
            return answers[len(held) - 1]

        found = plan_under(leases, plan(writes_shared=first), plan_again)

        assert found is answers[-1]
        assert leases.shares == shares
        assert held[-1] == shares
        assert len(held) == reads
