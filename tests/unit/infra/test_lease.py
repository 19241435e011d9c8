"""The converge Lease on the wire: field case 4, with a clock that moves when somebody waits."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from jr2.errors import StepFailed
from jr2_infra import process_table
from jr2_infra.lease import ConvergeLease, Holder, nonce_of
from tests.reporter import Reporter
from tests.waiting import LIMIT

START = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


class Clock:
    """A clock of one machine; `during` is called while somebody waits on it."""

    def __init__(self, ahead: float = 0.0) -> None:
        self.seconds = 0.0
        self.ahead = ahead
        self.during: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds + self.ahead)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.during()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(seconds)


class FastClock(Clock):
    """A clock that moves as fast as the renewing thread waits on it."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.seconds += seconds
        return event.wait(0.001)


class Api:
    """The Lease as an API server keeps it: a write with an old resourceVersion is a conflict."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.writes = 0
        self.before_write: Callable[[], None] = lambda: None

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        assert request.url.path.startswith("/apis/coordination.k8s.io/v1/namespaces/demo/leases")
        if request.method == "GET":
            if self.lease is None:
                return self.status(404)
            return httpx2.Response(200, json=self.lease)
        hook, self.before_write = self.before_write, lambda: None
        hook()
        body = json.loads(request.content)
        if request.method == "POST":
            if self.lease is not None:
                return self.status(409)
        else:
            assert request.method == "PUT"
            if self.lease is None:
                return self.status(404)
            if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
                return self.status(409)
        self.store(body)
        return httpx2.Response(200, json=self.lease)

    def store(self, body: dict[str, Any]) -> None:
        self.version += 1
        self.writes += 1
        self.lease = copy.deepcopy(body)
        self.lease["metadata"]["resourceVersion"] = str(self.version)

    def status(self, code: int) -> httpx2.Response:
        return httpx2.Response(code, json={"kind": "Status", "message": f"answered {code}"})

    @contextmanager
    def http(self) -> Iterator[httpx2.Client]:
        transport = httpx2.MockTransport(self.answer)
        with httpx2.Client(base_url="http://api", transport=transport) as client:
            yield client


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def http(api: Api) -> Iterator[httpx2.Client]:
    with api.http() as client:
        yield client


def holder(user: str, *, host: str = "here", pid: int = 7, **engine: Any) -> Holder:
    started = "2026-11-30T11:59:00Z"
    return Holder(user=user, host=host, pid=pid, started=started, **engine)


def lease_of(
    http: httpx2.Client, user: str, clock: Clock | None = None, **facts: Any
) -> ConvergeLease:
    return ConvergeLease(http, "demo", clock=clock or Clock(), holder=holder(user, **facts))


def renewing(lease: ConvergeLease, clock: Clock, *, after: float) -> Callable[[], None]:
    def renew() -> None:
        if clock.seconds > after:
            assert lease.renew()

    return renew


def test_a_free_lease_is_taken_at_once_and_given_back(api: Api, http: httpx2.Client) -> None:
    clock, reporter = Clock(), Reporter()
    lease = lease_of(http, "zoe", clock)

    with lease.held(reporter):
        assert api.lease is not None
        assert api.lease["spec"]["holderIdentity"] == lease.nonce == nonce_of(http, "demo")

    assert reporter.lines == []
    assert nonce_of(http, "demo") is None
    assert "zoe" not in json.dumps(api.lease)


def test_a_renewed_lease_is_left_to_its_holder(api: Api, http: httpx2.Client) -> None:
    """4g: one works, the other names it within five seconds."""
    clock = Clock()
    first = lease_of(http, "zoe", clock, host="far", pid=41)
    first.acquire(Reporter())
    clock.during = renewing(first, clock, after=2)

    with pytest.raises(StepFailed) as caught:
        lease_of(http, "bob", clock).acquire(Reporter())

    assert caught.value.printed == (
        'error: another `jr2 up` converges namespace "demo": '
        "zoe on far (pid 41, since 2026-11-30T11:59:00Z)"
    )
    assert clock.seconds <= 5
    assert nonce_of(http, "demo") == first.nonce


def test_a_machine_that_stood_still_takes_nothing_from_a_holder_that_lives(
    api: Api, http: httpx2.Client
) -> None:
    """Whoever watches got no turn for long, and the holder gets its own one only after that."""
    clock = Clock()
    first = lease_of(http, "zoe", clock)
    first.acquire(Reporter())
    looks = 0

    def stand_still() -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            clock.seconds += 60
        elif looks == 2:
            assert first.renew()

    clock.during = stand_still

    with pytest.raises(StepFailed, match="another `jr2 up` converges"):
        lease_of(http, "bob", clock).acquire(Reporter())

    assert nonce_of(http, "demo") == first.nonce


def test_who_waits_for_a_down_is_told_so(http: httpx2.Client) -> None:
    """A Lease of a Kit that says nothing of what its holder does is one of an `up`."""
    clock = Clock()
    first = lease_of(http, "zoe", clock, host="far", pid=41, verb="down")
    first.acquire(Reporter())
    clock.during = renewing(first, clock, after=2)

    with pytest.raises(StepFailed) as caught:
        lease_of(http, "bob", clock).acquire(Reporter())

    assert caught.value.printed == (
        'error: a `jr2 down` removes namespace "demo": '
        "zoe on far (pid 41, since 2026-11-30T11:59:00Z)"
    )
    said = holder("zoe").model_dump_json(exclude={"verb"})
    assert not Holder.model_validate_json(said).removes


def test_a_holder_learns_that_a_down_took_it_over(http: httpx2.Client) -> None:
    first, second = lease_of(http, "zoe"), lease_of(http, "bob", host="far", verb="down")
    first.acquire(Reporter())
    second.acquire(Reporter())

    assert not first.renew()
    with pytest.raises(StepFailed) as caught:
        first.record_engine(1, "x", "y")

    assert caught.value.printed == (
        'error: a `jr2 down` took over namespace "demo" and removes it: '
        "bob on far (pid 7, since 2026-11-30T11:59:00Z)"
    )


def test_a_holder_learns_that_its_lease_was_removed(api: Api, http: httpx2.Client) -> None:
    """Nobody says who did it, so nobody is blamed."""
    lease = lease_of(http, "zoe")
    lease.acquire(Reporter())
    api.lease = None

    assert not lease.renew()
    with pytest.raises(StepFailed) as caught:
        lease.record_engine(1, "x", "y")

    assert caught.value.printed == (
        'error: the Lease jr2-converge of namespace "demo" was removed, so another run may write '
        "— run the command again"
    )


@pytest.mark.parametrize("verb", ["up", "down"])
def test_a_holder_learns_of_a_run_that_took_it_over_and_ended(
    http: httpx2.Client, verb: str
) -> None:
    first, second = lease_of(http, "zoe"), lease_of(http, "bob", host="far", verb=verb)
    first.acquire(Reporter())
    second.acquire(Reporter())
    second.release()

    assert not first.renew()
    with pytest.raises(StepFailed) as caught:
        first.record_engine(1, "x", "y")

    assert caught.value.printed == (
        'error: another run took over namespace "demo" and has ended — run the command again'
    )


@pytest.mark.parametrize("host", ["here", "far"])
def test_a_lease_that_does_not_move_is_taken_over(http: httpx2.Client, host: str) -> None:
    """4b and 4c: watched on the own clock, with a progress line and no question."""
    dead = lease_of(http, "zoe", host=host)
    dead.acquire(Reporter())
    clock, reporter = Clock(ahead=-3600), Reporter()
    lease = lease_of(http, "bob", clock)

    lease.acquire(reporter)

    assert 5 <= clock.seconds <= 6
    assert reporter.lines == [
        f"lease: taken over from zoe on {host} (pid 7, since 2026-11-30T11:59:00Z), "
        "which no longer renews it"
    ]
    assert set(reporter.shown) == {
        f"lease: held by zoe on {host} (pid 7, since 2026-11-30T11:59:00Z) — "
        "watching whether it is renewed"
    }
    assert nonce_of(http, "demo") == lease.nonce


def test_each_holder_is_later_than_the_one_before(http: httpx2.Client) -> None:
    """The Orchestrator compares times of acquisition, and no two machines agree on the time."""
    first = lease_of(http, "zoe", Clock(ahead=3600))
    first.acquire(Reporter())
    first.release()
    second = lease_of(http, "bob")
    second.acquire(Reporter())

    assert second.stamp.acquired > first.stamp.acquired
    before = second.stamp
    assert second.renew()
    assert second.stamp == before


def test_of_two_that_take_it_over_one_has_it(api: Api, http: httpx2.Client) -> None:
    lease_of(http, "dead").acquire(Reporter())
    clock = Clock()
    quick = lease_of(http, "quick", clock)

    def overtake() -> None:
        assert quick._take(quick._read())  # type: ignore[arg-type]

    clock.during = renewing(quick, clock, after=6)
    api.before_write = overtake

    with pytest.raises(StepFailed, match=r"another `jr2 up` converges .*: quick on here"):
        lease_of(http, "slow", clock).acquire(Reporter())
    assert nonce_of(http, "demo") == quick.nonce


def test_a_holder_learns_that_it_was_taken_over(http: httpx2.Client) -> None:
    first, second = lease_of(http, "zoe"), lease_of(http, "bob", host="far")
    first.acquire(Reporter())
    second.acquire(Reporter())

    assert not first.renew()
    with pytest.raises(StepFailed, match=r"took over .*: bob on far"):
        first.record_engine(1, "x", "y")
    first.release()
    assert nonce_of(http, "demo") == second.nonce


def test_what_the_body_raised_becomes_the_name_of_the_other_run(http: httpx2.Client) -> None:
    lease = lease_of(http, "zoe")

    def converge() -> None:
        with lease.held(Reporter()):
            lease_of(http, "bob").acquire(Reporter())
            assert not lease.renew()
            raise StepFailed("the engine ended")

    with pytest.raises(StepFailed, match=r"took over the converge .*: bob"):
        converge()


def test_a_change_by_somebody_else_that_is_no_holder_does_not_lose_it(
    api: Api, http: httpx2.Client
) -> None:
    lease = lease_of(http, "zoe")
    lease.acquire(Reporter())
    assert api.lease is not None
    api.lease["metadata"]["labels"]["x"] = "y"
    api.store(api.lease)

    assert lease.renew()
    assert nonce_of(http, "demo") == lease.nonce


def test_a_change_by_somebody_else_is_no_sign_of_life(api: Api, http: httpx2.Client) -> None:
    """A label that a tool writes while a run watches does not make a dead holder a living one."""
    dead = lease_of(http, "zoe")
    dead.acquire(Reporter())
    clock, reporter = Clock(), Reporter()

    def touch() -> None:
        assert api.lease is not None
        api.lease["metadata"]["labels"]["touched"] = str(clock.seconds)
        api.store(api.lease)

    clock.during = touch
    lease = lease_of(http, "bob", clock)

    lease.acquire(reporter)

    assert nonce_of(http, "demo") == lease.nonce
    assert len(reporter.lines) == 1
    assert clock.seconds < 6


def test_a_lease_that_is_given_back_while_it_is_watched_is_free(http: httpx2.Client) -> None:
    first, clock, reporter = lease_of(http, "zoe"), Clock(), Reporter()
    first.acquire(Reporter())
    clock.during = first.release
    lease = lease_of(http, "bob", clock)

    lease.acquire(reporter)

    assert nonce_of(http, "demo") == lease.nonce
    assert reporter.lines == []
    assert clock.seconds < 1


def test_a_lease_that_goes_with_its_namespace_is_not_missed(api: Api, http: httpx2.Client) -> None:
    lease = lease_of(http, "zoe")
    with lease.held(Reporter()):
        lease.goes_with_its_namespace()
        api.lease = None
        writes = api.writes
        assert lease.renew()
    assert api.writes == writes


def test_a_lease_that_lapses_is_taken_over_by_the_next_run(api: Api, http: httpx2.Client) -> None:
    failed = lease_of(http, "zoe")
    with failed.held(Reporter()):
        failed.lapse()
        writes = api.writes
        assert failed.renew()
    assert api.writes == writes
    assert nonce_of(http, failed.namespace) == failed.nonce

    reporter = Reporter()
    lease_of(http, "amy").acquire(reporter)

    assert [line.partition(" from ")[0] for line in reporter.lines] == ["lease: taken over"]


def test_the_servers_words_are_said(http: httpx2.Client, api: Api) -> None:
    api.answer = lambda request: httpx2.Response(  # type: ignore[method-assign]
        403, json={"message": "leases is forbidden"}
    )
    with api.http() as forbidden, pytest.raises(StepFailed) as caught:
        lease_of(forbidden, "zoe").acquire(Reporter())

    assert caught.value.printed == "error: cannot take the Lease jr2-converge: leases is forbidden"


def test_a_holder_that_cannot_be_read_is_taken_over_all_the_same(
    api: Api, http: httpx2.Client
) -> None:
    dead = lease_of(http, "zoe")
    dead.acquire(Reporter())
    assert api.lease is not None
    api.lease["metadata"]["annotations"] = {"jr2.dev/lease-holder": "not JSON"}
    reporter = Reporter()

    lease_of(http, "bob").acquire(reporter)

    assert reporter.lines == [
        "lease: taken over from a run that does not say who it is, which no longer renews it"
    ]


SLEEPER = (
    "import os, sys, time\n"
    "child = os.fork()\n"
    "os.setpgid(0, 0) if child == 0 else None\n"
    "print(os.getpid(), flush=True)\n"
    "time.sleep(3600)\n"
)


@pytest.fixture
def engine() -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A session as the engine's is: a leader, and a child in a process group of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={"JR2_RUN_FILE": "/dev/shm/jr2-0-abc/run.json"},
    )
    assert process.stdout is not None
    pids: list[int] = []
    try:
        pids += [int(process.stdout.readline()) for _ in range(2)]
        yield process, pids
    finally:
        for pid in {process.pid, *pids}:
            if process_table.start_of(pid) is not None:
                os.kill(pid, 9)
        process.stdout.close()
        process.wait()


def take_over_from(http: httpx2.Client, process: subprocess.Popen[str], start: str) -> None:
    dead = lease_of(http, "zoe")
    dead.acquire(Reporter())
    dead.record_engine(process.pid, start, "/dev/shm/jr2-0-abc/run.json")
    lease_of(http, "bob").acquire(Reporter())


def gone(pid: int) -> bool:
    until = time.monotonic() + LIMIT
    while process_table.start_of(pid) is not None and time.monotonic() < until:
        time.sleep(0.01)
    return process_table.start_of(pid) is None


def test_what_is_left_of_a_killed_run_is_ended(
    http: httpx2.Client, engine: tuple[subprocess.Popen[str], list[int]]
) -> None:
    process, pids = engine
    take_over_from(http, process, process_table.start_of(process.pid) or "")
    assert all(gone(pid) for pid in pids)


def test_what_is_left_is_ended_also_when_its_leader_is_gone(
    http: httpx2.Client, engine: tuple[subprocess.Popen[str], list[int]]
) -> None:
    process, pids = engine
    start = process_table.start_of(process.pid) or ""
    process.kill()
    process.wait()
    (left,) = [pid for pid in pids if pid != process.pid]
    assert process_table.start_of(left) is not None

    take_over_from(http, process, start)

    assert gone(left)


def test_a_process_that_came_by_the_number_is_not_touched(http: httpx2.Client) -> None:
    """4d: another program has the session number that the Lease names."""
    other = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); import time; time.sleep(3600)"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={},
    )
    try:
        assert other.stdout is not None
        other.stdout.readline()
        take_over_from(http, other, "an earlier start")
        assert other.poll() is None
    finally:
        other.kill()
        other.communicate()


def test_a_run_of_another_host_is_not_looked_for_here(
    http: httpx2.Client, engine: tuple[subprocess.Popen[str], list[int]]
) -> None:
    process, pids = engine
    dead = lease_of(http, "zoe", host="far")
    dead.acquire(Reporter())
    start = process_table.start_of(process.pid) or ""
    dead.record_engine(process.pid, start, "/dev/shm/jr2-0-abc/run.json")

    lease_of(http, "bob").acquire(Reporter())

    assert all(process_table.start_of(pid) is not None for pid in pids)


def test_a_run_that_cannot_renew_ends_its_engine_before_another_can_have_it(
    api: Api, engine: tuple[subprocess.Popen[str], list[int]]
) -> None:
    """The server hangs: each renewal gives up in time, and the engine does not outlive the Lease."""
    process, pids = engine
    clock, timeouts = FastClock(), list[float]()
    answering = threading.Event()
    answering.set()

    def answer(request: httpx2.Request) -> httpx2.Response:
        if answering.is_set():
            return api.answer(request)
        timeout = request.extensions["timeout"]["read"]
        timeouts.append(timeout)
        clock.seconds += timeout
        raise httpx2.ReadTimeout("hangs", request=request)

    def converge(http: httpx2.Client) -> None:
        lease = lease_of(http, "zoe", clock)
        with lease.held(Reporter()):
            start = process_table.start_of(process.pid) or ""
            lease.record_engine(process.pid, start, "/dev/shm/jr2-0-abc/run.json")
            answering.clear()
            assert all(gone(pid) for pid in pids)
            # What comes back later changes nothing: another run may have been here.
            answering.set()
            raise StepFailed("the engine ended")

    transport = httpx2.MockTransport(answer)
    with (
        httpx2.Client(base_url="http://api", transport=transport) as http,
        pytest.raises(StepFailed, match="could not be renewed for 5s, so another run may have it"),
    ):
        converge(http)
    assert timeouts
    assert max(timeouts) <= 2


def test_a_run_that_lost_its_lease_starts_no_engine(http: httpx2.Client, api: Api) -> None:
    clock = Clock()
    lease = lease_of(http, "zoe", clock)
    lease.acquire(Reporter())
    clock.seconds += 4.9
    assert lease._within()
    clock.seconds += 0.2
    assert not lease._within()

    with pytest.raises(StepFailed, match="could not be renewed"):
        lease.record_engine(1, "x", "y")
