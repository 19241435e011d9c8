"""The routes: who may, what they answer, and the one error body."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jr2 import names, signed

pytestmark = pytest.mark.anyio

HASH = "0" * 64
BANDS = {
    "GET /": "open",
    "GET /assets/{file}": "open",
    "GET /healthz": "open",
    "GET /readyz": "open",
    "GET /metrics": "open",
    "GET /workflows": "open",
    "GET /workflows/{name}": "open",
    "GET /workflows/{name}/machine": "open",
    "GET /workflows/{name}/runs": "open",
    "GET /workflows/{name}/events": "open",
    "GET /workflows/{name}/runs/{run}/events": "open",
    "POST /workflows/{name}/runs": "instance",
    "GET /runs": "instance",
    "GET /runs/resolve": "instance",
    "GET /runs/{run}": "instance",
    "GET /runs/{run}/events": "instance",
    "POST /runs/{run}/events": "instance",
    "POST /runs/{run}/gates/{gate}/events": "instance",
    "GET /assemblies": "instance",
    "GET /assemblies/{hash}/files": "publisher",
    "POST /assemblies/{hash}/missing": "publisher",
    "POST /blobs": "publisher",
    "PUT /blobs/{sha256}": "publisher",
    "PUT /assemblies/{hash}": "publisher",
    "GET /agents/{iid}/surface": "authenticated",
    "POST /agents/{iid}/events": "authenticated",
    "GET /agents/{iid}/deliveries/{delivery}": "authenticated",
    "POST /sandboxes/{name}/fetch": "authenticated",
}
"""The band of each route; a route that the app serves and this table does not name fails."""

KEY = b"0123456789abcdef0123456789abcdef"
POD = "jr2-instance-harness"
SANDBOX_TOKEN = signed.sandbox_token(KEY, POD)
PRINCIPALS = {
    "nobody": (None, None),
    "stranger": ("Bearer who", None),
    "another scheme": ("Basic instance-token", None),
    "an empty token": ("Bearer ", None),
    "instance": ("bearer  instance-token ", "instance"),
    "publisher": ("Bearer publish-token", "publisher"),
    "sandbox": (f"Bearer {SANDBOX_TOKEN}", "sandbox"),
    "a pod's name alone": (f"Bearer {POD}.", None),
    "another pod's signature": (f"Bearer other{SANDBOX_TOKEN}", None),
    "a pod of another key": (f"Bearer {signed.sandbox_token(b'x' * 32, POD)}", None),
    "a Harness bearer": (f"Bearer {signed.harness_bearer(KEY, POD)}", None),
    "a proof": (f"Bearer {POD}.{signed.proof(KEY, POD)}", None),
}
"""What each sends, and whom the Orchestrator takes it for."""

NOBODY: dict[str, str] = {}
STRANGER = {"Authorization": "Bearer who"}
INSTANCE_HEADER = {"Authorization": "bearer  instance-token "}


@pytest.mark.parametrize("who", PRINCIPALS)
async def test_each_band_opens_to_its_principal_only(bench: Any, who: str) -> None:
    """Each route of the table, asked by one principal."""
    header, principal = PRINCIPALS[who]
    run = await bench.start("gate")
    bench.feeds.close_all()  # a feed that opens ends with its first frame; the program stops
    for route, band in BANDS.items():
        method, path = route.split()
        path = path.format(
            name="gate",
            run=run,
            gate="review",
            hash=bench.registry.hash,
            sha256=HASH,
            iid="r%2Fa",
            delivery="1",
            file="main.js",
        )
        accept = "text/html" if path == "/" else "*/*"
        answer = await bench.client.request(
            method,
            path,
            headers={
                "Accept": accept,
                **({} if header is None else {"Authorization": header}),
            },
            params={"prefix": run} if "resolve" in path else None,
        )
        if band == "open":
            assert answer.status_code == 200, route
        elif principal is None:
            assert (answer.status_code, answer.json()) == (401, {"error": "unauthorized"}), route
        elif band == "authenticated" and principal != "publisher":
            # Nothing is registered; while the program stops, nobody is told that this is for good.
            is_pod = principal == "sandbox"
            gone = 503 if "agents" in path else 403 if is_pod else 404
            assert (answer.status_code, list(answer.json())) == (gone, ["error"]), route
        elif principal != band:
            assert (answer.status_code, list(answer.json())) == (403, ["error"]), route
        else:
            # The Gate and the control route refuse an empty event, and a publish one without a
            # Lease; no bytes are a bundle, and no blob of that name.
            opened = 201 if "{name}" in route and method != "GET" else 400
            opened = 200 if method == "GET" or route == "POST /blobs" else opened
            assert answer.status_code == opened, route


async def test_a_pod_hears_of_a_conversation_that_is_over_and_of_its_own_sandbox_alone(
    bench: Any,
) -> None:
    """No Turn runs, so none is registered: 404 comes before the question whose it is."""
    pod = {"Authorization": f"Bearer {SANDBOX_TOKEN}"}
    for path in ("run%2Factor%2Fagent", "run/actor/agent", "%00", "%ff"):
        for method, rest in (("GET", "surface"), ("POST", "events"), ("GET", "deliveries/1")):
            answer = await bench.client.request(method, f"/agents/{path}/{rest}", headers=pod)
            assert answer.status_code == 404, answer.text
            assert answer.json()["error"].endswith('" is registered')
    encoded = await bench.client.get("/agents/run%2Factor%2Fagent/surface", headers=pod)
    assert encoded.json()["error"] == 'no conversation "run/actor/agent" is registered'
    for name, headers, code in (
        (POD, pod, 404),
        ("other", pod, 403),
        ("other", INSTANCE_HEADER, 404),
        (f"{POD}%00", pod, 403),
    ):
        answer = await bench.client.post(f"/sandboxes/{name}/fetch", headers=headers)
        assert answer.status_code == code


async def served(bench: Any) -> set[tuple[str, str]]:
    """Return method and path of every route."""
    document = (await bench.client.get("/openapi.json")).json()
    return {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }


async def test_the_table_of_bands_names_every_route_and_no_other(bench: Any) -> None:
    assert {tuple(route.split()) for route in BANDS} == await served(bench)


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("localhost", True),
        ("LOCALHOST:1", True),
        ("127.0.0.1:40331", True),
        ("[::1]:4000", True),
        ("10.42.0.7:4000", True),
        ("jr2-orchestrator:4000", True),
        ("jr2-orchestrator.unit.svc", True),
        ("jr2-orchestrator.unit.svc.cluster.local.:4000", True),
        ("jr2-orchestrator.other.svc", False),
        ("jr2-orchestrator.unit.svc.evil.example", False),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("localhost:80:80", False),
        ("localhost@evil.example", False),
        ("", False),
    ],
)
async def test_only_the_orchestrators_own_names_are_answered(
    bench: Any, host: str, known: bool
) -> None:
    for path in ("/healthz", "/runs", "/nothing"):
        answer = await bench.client.get(path, headers={**INSTANCE_HEADER, "Host": host})
        assert (answer.status_code != 421) is known
        if not known:
            assert list(answer.json()) == ["error"]


@pytest.mark.parametrize(
    ("origin", "taken"),
    [
        ("http://localhost:8080", True),
        ("https://localhost:8080", True),
        ("http://localhost", False),
        ("http://localhost:8081", False),
        ("http://evil.example", False),
        ("null", False),
        ("", False),
    ],
)
async def test_a_write_of_a_page_is_taken_from_the_same_address_only(
    bench: Any, origin: str, taken: bool
) -> None:
    headers = {**INSTANCE_HEADER, "Host": "localhost:8080", "Origin": origin}
    write = await bench.client.post("/workflows/gate/runs", headers=headers)
    assert write.status_code == (201 if taken else 403)
    assert len((await bench.get("/runs")).json()) == taken
    read = await bench.client.get("/workflows", headers=headers)
    assert read.status_code == 200
    assert "access-control-allow-origin" not in read.headers


async def test_healthz_proves_itself_to_whoever_sends_a_nonce(bench: Any) -> None:
    nonce = "n" * 43
    answer = await bench.client.get("/healthz", headers={names.HEADER_NONCE: nonce})
    assert signed.is_proof(KEY, nonce, answer.json()["proof"])
    assert not signed.is_proof(b"x" * 32, nonce, answer.json()["proof"])
    assert not signed.is_proof(KEY, nonce[1:], answer.json()["proof"])
    assert "proof" not in (await bench.client.get("/healthz")).json()
    for bad in ("short", "n" * 129, "harness:" + nonce, nonce + " "):
        answer = await bench.client.get("/healthz", headers={names.HEADER_NONCE: bad.encode()})
        assert answer.status_code == 400, bad


@pytest.mark.parametrize("headers", [NOBODY, STRANGER, INSTANCE_HEADER])
async def test_a_body_is_not_read_before_its_sender_is_known(
    bench: Any, headers: dict[str, str]
) -> None:
    read = False

    async def body() -> Any:
        nonlocal read
        read = True
        yield b"x"

    answer = await bench.client.put(f"/assemblies/{'0' * 64}", content=body(), headers=headers)
    assert answer.status_code in (401, 403)
    assert not read


ERRORS = [
    ("GET", "/", 404),
    ("GET", "/nothing", 404),
    ("GET", "/workflows/none", 404),
    ("GET", "/workflows/none/machine", 404),
    ("POST", "/workflows/none/runs", 404),
    ("DELETE", "/runs", 405),
    ("GET", "/runs/none", 404),
    ("GET", "/runs/none/events", 404),
    ("GET", "/runs/resolve?prefix=abc", 400),
    ("GET", "/runs/resolve", 400),
    ("POST", "/runs/none/events", 400),
    ("POST", "/runs/none/gates/review/events", 400),
]


async def test_every_error_has_the_one_body(bench: Any) -> None:
    for method, path, code in ERRORS:
        answer = await bench.client.request(method, path, headers=INSTANCE_HEADER)
        assert answer.status_code == code, path
        assert list(answer.json()) == ["error"], path
        assert isinstance(answer.json()["error"], str), path


async def test_a_body_that_is_no_object_reads_as_empty(bench: Any) -> None:
    for body in (b"", b"{", b"[1]", b'"x"', b"null", b"NaN", b'{"a": NaN}', b"\xff", b'"\\ud800"'):
        answer = await bench.client.post(
            "/workflows/gate/runs", content=body, headers=INSTANCE_HEADER
        )
        assert answer.status_code == 201, body[:20]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (rb'"\ud800"', "half of a surrogate pair"),
        (rb'{"\uDC00": 1}', "half of a surrogate pair"),
        (b'"\xed\xa0\x80"', "half of a surrogate pair"),
        (b"[1, -1e999]", "a number that is too large"),
        (b"9" * 400 + b".5", "a number that is too large"),
        (b"9" * 5000, "an integer with too many digits"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
async def test_a_value_that_would_not_come_back_as_it_came_is_refused(
    bench: Any, value: bytes, text: str
) -> None:
    """Half of a pair has no UTF-8, and a number that is read as infinite would become `null`."""
    run = await bench.start("gate")
    for path, body in (
        ("/workflows/gate/runs", b'{"value": %b}' % value),
        (f"/runs/{run}/gates/review/events", b'{"type": "go", "value": %b}' % value),
        (f"/runs/{run}/events", b'{"type": "CANCEL", "value": %b}' % value),
    ):
        answer = await bench.client.post(path, content=body, headers=INSTANCE_HEADER)
        assert answer.status_code == 400, path
        assert text in answer.json()["error"]
    live = (await bench.get("/runs")).json()
    assert [(each["runId"], each["status"]) for each in live] == [(run, "active")]


async def test_a_payload_that_no_run_could_show_is_refused_and_the_run_goes_on(bench: Any) -> None:
    run = await bench.start("gate")
    path = f"/runs/{run}/gates/review/events"
    for depth, status in ((101, 400), (199, 400), (98, 200)):
        body = b'{"type": "go", "value": %b}' % (b"[" * depth + b"]" * depth)
        answer = await bench.client.post(path, content=body, headers=INSTANCE_HEADER)
        assert answer.status_code == status, depth
        if status == 400:
            assert answer.json()["error"] == "the payload is nested too deeply"


async def test_a_value_that_only_looks_like_one_is_taken(bench: Any) -> None:
    run = await bench.start("gate")
    values = [1e300, 10**400, "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")]
    body = json.dumps({"type": "go", "values": values, "text": "1e999 \\ud800"})
    answer = await bench.client.post(
        f"/runs/{run}/gates/review/events", content=body, headers=INSTANCE_HEADER
    )
    assert answer.status_code == 200
    seen = (await bench.status(run))["context"]["seen"]
    assert seen[0]["payload"] == {"values": values, "text": "1e999 \\ud800"}


async def test_a_body_over_the_limit_is_413_with_and_without_its_length(bench: Any) -> None:
    large = json.dumps({"x": "y" * names.MAX_EVENT}).encode()

    async def chunks() -> Any:
        yield large

    for content in (large, chunks()):
        answer = await bench.client.post(
            "/workflows/gate/runs", content=content, headers=INSTANCE_HEADER
        )
        assert answer.status_code == 413


async def test_a_run_from_start_to_end(bench: Any) -> None:
    run = await bench.start("gate")
    status = await bench.status(run)
    assert status["status"] == "active"
    assert [gate["gate"] for gate in status["gates"]] == ["review"]
    (listed,) = (await bench.get("/runs")).json()
    assert listed["runId"] == run
    assert "gates" not in listed
    resolved = (await bench.get(f"/runs/resolve?prefix={run[:6].upper()}")).json()
    assert resolved == {"prefix": run[:6].upper(), "runIds": [run], "truncated": False}

    wrong = await bench.post(f"/runs/{run}/gates/review/events", {"type": "no"})
    assert (wrong.status_code, wrong.json()) == (400, {"error": "accepts: go"})
    closed = await bench.post(f"/runs/{run}/gates/other/events", {"type": "go"})
    assert closed.status_code == 404
    assert closed.json() == {"error": 'no Gate "other" is open — open Gates: review'}
    taken = await bench.post(f"/runs/{run}/gates/review/events", {"type": "go", "n": 1})
    assert (taken.status_code, taken.json()) == (200, {"ok": True})

    status = await bench.status(run)
    assert (status["status"], status["gates"]) == ("done", [])
    (seen,) = status["context"]["seen"]
    assert (seen["name"], seen["payload"]) == ("go", {"n": 1})
    assert (await bench.get("/runs")).json() == []
    again = await bench.post(f"/runs/{run}/gates/review/events", {"type": "go"})
    assert again.status_code == 404
    assert "has settled (done)" in again.json()["error"]


async def test_the_entry_that_the_sender_saw_goes_along(bench: Any) -> None:
    run = await bench.start("gate")
    await bench.client.post(
        f"/runs/{run}/gates/review/events",
        json={"type": "go"},
        headers={**INSTANCE_HEADER, "If-Gate": "g-1"},
    )
    event = bench.worker.asked[-1]["event"]
    assert event == {"kind": "gate", "gate": "review", "id": "g-1", "name": "go", "payload": {}}


async def test_the_open_band_sees_no_context(bench: Any) -> None:
    run = await bench.start("gate")
    answer = await bench.client.get("/workflows/gate/runs")
    assert answer.json() == [
        {
            "runId": run,
            "workflow": "gate",
            "status": "active",
            "value": "review",
            "children": [],
        }
    ]
    assert (await bench.client.get("/workflows/none/runs")).json() == []


async def test_cancel_ends_a_live_run_and_leaves_every_other_alone(bench: Any) -> None:
    run = await bench.start("gate")
    for _ in range(2):
        answer = await bench.post(f"/runs/{run}/events", {"type": "CANCEL"})
        assert (answer.status_code, answer.json()) == (200, {"ok": True})
    assert (await bench.status(run))["status"] == "cancelled"
    unknown = await bench.post("/runs/none/events", {"type": "CANCEL"})
    assert (unknown.status_code, unknown.json()) == (200, {"ok": True})
    other = await bench.post(f"/runs/{run}/events", {"type": "STOP"})
    assert other.status_code == 400
    assert "CANCEL" in other.json()["error"]


async def test_openapi_is_served(bench: Any) -> None:
    paths = (await bench.client.get("/openapi.json")).json()["paths"]
    assert "/assemblies/{hash}" in paths
    assert "/runs/{run}/gates/{gate}/events" in paths
