"""The Custodian's config under a real Envoy, before an Orchestrator that notes what reaches it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from jr2 import names
from jr2.custodian import Ports, bootstrap, script
from tests.envoy import envoy
from tests.far_side import FarSide, Quiet
from tests.ports import free_port, free_ports
from tests.waiting import LIMIT

TOKEN = "jr2-instance-harness.signed-0123456789"
STAND_IN = {"Authorization": "Bearer jr2-held-JR2_SANDBOX_TOKEN"}


@dataclass
class Orchestrator:
    """What reached it, and how it answers."""

    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    status: int = 200


def _handler(orchestrator: Orchestrator) -> type[Quiet]:
    class Handler(Quiet):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.body()
            headers = {name.lower(): value for name, value in self.headers.items()}
            orchestrator.asked.append((self.command, self.path, headers))
            body = b'{"picks":[]}'
            self.send_response_only(orchestrator.status)
            self.send_header("Server", "theirs")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = answer

    return Handler


@dataclass
class Custodian:
    client: httpx2.Client
    health: str
    log: Path


def files(folder: Path, ports: Ports, value: bytes | None = TOKEN.encode()) -> list[str]:
    """Write what a pod mounts; return the command."""
    (folder / "values").mkdir()
    if value is not None:
        (folder / "values" / names.ENV_SANDBOX_TOKEN).write_bytes(value)
    lua = folder / names.HELD_SCRIPT_KEY
    lua.write_text(script())
    config = folder / names.HELD_BOOTSTRAP_KEY
    config.write_text(bootstrap("127.0.0.1", ports=ports, script_path=str(lua)))
    return [
        str(envoy()), "-c", str(config), "--concurrency", "1", "--disable-hot-restart",
        "--log-level", "warning",
    ]  # fmt: skip


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {"JR2_CUSTODIAN_VALUES": str(folder / "values"), **more}


@contextlib.contextmanager
def custodian(folder: Path, orchestrator_port: int, **more: str) -> Iterator[Custodian]:
    control, health_port = free_ports(2)
    ports = Ports(control=control, health=health_port, orchestrator=orchestrator_port)
    log = folder / "log"
    with log.open("wb") as said:
        child = subprocess.Popen(
            files(folder, ports), env=environment(folder, **more), stdout=said, stderr=said
        )
    health = f"http://127.0.0.1:{ports.health}"
    try:
        with httpx2.Client(
            base_url=f"http://127.0.0.1:{ports.control}", timeout=LIMIT, trust_env=False
        ) as client:
            until = time.monotonic() + LIMIT
            while True:
                with contextlib.suppress(httpx2.HTTPError):
                    if client.get(f"{health}/healthz").status_code == 200:
                        break
                assert child.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.02)
            yield Custodian(client, health, log)
    finally:
        child.terminate()
        child.wait(timeout=LIMIT)


@pytest.fixture(scope="module")
def orchestrator() -> Iterator[tuple[Orchestrator, int]]:
    found = Orchestrator()
    with FarSide(_handler(found)) as server:
        yield found, server.port


@pytest.fixture(scope="module")
def of_the_instance(
    orchestrator: tuple[Orchestrator, int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Custodian]:
    with custodian(tmp_path_factory.mktemp("custodian"), orchestrator[1]) as found:
        yield found


@pytest.fixture
def seen(orchestrator: tuple[Orchestrator, int]) -> Iterator[Orchestrator]:
    orchestrator[0].asked.clear()
    yield orchestrator[0]
    orchestrator[0].status = 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/agents/run-1%2Fplanner/surface"),
        ("POST", "/agents/run-1%2Fplanner/events"),
        ("GET", "/agents/run-1%2Fplanner/deliveries/d-7?wait=25"),
    ],
)
def test_a_call_leaves_with_the_token_of_the_pod(
    of_the_instance: Custodian, seen: Orchestrator, method: str, path: str
) -> None:
    answer = of_the_instance.client.request(
        method, path, headers={**STAND_IN, "X-Api-Key": "mine", "User-Agent": "harness"}
    )
    assert (answer.status_code, answer.json()) == (200, {"picks": []})
    assert answer.headers["server"] == "theirs"
    [(got, at, headers)] = seen.asked
    assert (got, at) == (method, path)
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert "x-api-key" not in headers
    assert set(headers) == {
        *("accept", "accept-encoding", "authorization", "host", "user-agent"),
        *({"content-length"} if method == "POST" else ()),
    }


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/runs"),
        ("POST", "/agents/a/surface"),
        ("GET", "/agents/a/events"),
        ("POST", "/agents/a/b/events"),
        ("GET", "/agents/a/../../runs"),
        ("DELETE", "/agents/a/surface"),
        ("GET", "/healthz"),
        ("GET", "/agents/a/surface/"),
        ("POST", "/sandboxes/other/fetch"),
        ("POST", "/assemblies"),
    ],
)
def test_every_other_call_ends_in_the_pod(
    of_the_instance: Custodian, seen: Orchestrator, method: str, path: str
) -> None:
    for headers in ({}, STAND_IN):
        answer = of_the_instance.client.request(method, path, headers=headers)
        assert (answer.status_code, answer.json()) == (404, {"error": "not found"})
        assert answer.headers["content-type"] == "application/json"
    assert seen.asked == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 403),
        ([("Authorization", "Bearer something-else")], 403),
        ([("Authorization", f"Bearer {TOKEN}")], 403),
        ([("Authorization", "Bearer jr2-held-JR2_SANDBOX_TOKEN2")], 403),
        ([("X-Api-Key", "jr2-held-JR2_SANDBOX_TOKEN")], 403),
        ([("Authorization", "Bearer jr2-held-JR2_SANDBOX_TOKEN")] * 2, 400),
        ([("Authorization", "Bearer jr2-held-JR2_SANDBOX_TOKEN")] + [("X-Api-Key", "a")] * 2, 400),
    ],
)
def test_a_call_without_its_stand_in_is_refused(
    of_the_instance: Custodian,
    seen: Orchestrator,
    headers: list[tuple[str, str]],
    status: int,
) -> None:
    answer = of_the_instance.client.get("/agents/a/surface", headers=headers)
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}
    assert seen.asked == []


def test_the_instance_harness_asks_for_no_fetch_and_a_sandbox_for_its_own(
    of_the_instance: Custodian,
    seen: Orchestrator,
    orchestrator: tuple[Orchestrator, int],
    tmp_path: Path,
) -> None:
    answer = of_the_instance.client.post("/fetch", headers=STAND_IN, json={})
    assert (answer.status_code, answer.json()) == (404, {"error": "not found"})
    assert seen.asked == []
    with custodian(tmp_path, orchestrator[1], JR2_SANDBOX="sandbox-1") as found:
        assert found.client.post("/fetch", headers=STAND_IN, json={}).status_code == 200
    assert [(method, path) for method, path, _ in seen.asked] == [
        ("POST", "/sandboxes/sandbox-1/fetch")
    ]


def test_what_the_orchestrator_says_is_told_from_its_silence(
    of_the_instance: Custodian, seen: Orchestrator, tmp_path: Path
) -> None:
    seen.status = 503
    answer = of_the_instance.client.get("/agents/a/surface", headers=STAND_IN)
    assert answer.status_code == 503
    assert "x-jr2-custodian" not in answer.headers
    with custodian(tmp_path, free_port()) as found:
        answer = found.client.get("/agents/a/surface", headers=STAND_IN)
        assert answer.status_code == 502
        assert answer.headers["x-jr2-custodian"] == "unreachable"
        assert answer.json()["error"] == "the Orchestrator cannot be reached"
        assert TOKEN not in answer.text


def test_the_health_check_is_all_that_its_port_answers(of_the_instance: Custodian) -> None:
    assert of_the_instance.client.get(f"{of_the_instance.health}/healthz").text == "ok"
    for path in ("/", "/agents/a/surface", "/stats", "/config_dump"):
        assert of_the_instance.client.get(f"{of_the_instance.health}{path}").status_code == 404


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "cannot read the value of JR2_SANDBOX_TOKEN"),
        (b"", "refuses the value of JR2_SANDBOX_TOKEN"),
        (b"to\nken", "refuses the value of JR2_SANDBOX_TOKEN"),
        ("tök".encode(), "refuses the value of JR2_SANDBOX_TOKEN"),
    ],
)
def test_it_does_not_start_with_a_value_that_no_header_carries(
    tmp_path: Path, value: bytes | None, said: str
) -> None:
    control, health = free_ports(2)
    command = files(tmp_path, Ports(control=control, health=health), value)
    done = subprocess.run(
        [*command, "--mode", "validate"],
        env=environment(tmp_path),
        capture_output=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode != 0
    assert said in done.stderr.decode() + done.stdout.decode()
    assert b"ken" not in done.stderr.replace(b"JR2_SANDBOX_TOKEN", b"")


def test_no_admin_and_nobody_is_asked_for_a_config() -> None:
    config = json.loads(bootstrap("jr2-orchestrator.demo.svc"))
    assert set(config) == {"overload_manager", "static_resources"}
    [cluster] = config["static_resources"]["clusters"]
    endpoint = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]
    assert endpoint["address"]["socket_address"] == {
        "address": "jr2-orchestrator.demo.svc",
        "port_value": 4000,
    }
