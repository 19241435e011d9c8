"""The routes: who may, what they answer, and the one error body."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from jr2 import names

pytestmark = pytest.mark.anyio

OPEN = ["GET /healthz", "GET /readyz", "GET /workflows", "GET /workflows/gate"]
OPEN += ["GET /workflows/gate/machine", "GET /workflows/gate/runs"]
INSTANCE = ["POST /workflows/gate/runs", "GET /runs", "GET /runs/resolve?prefix=0000"]
INSTANCE += ["GET /runs/none", "GET /runs/none/events", "POST /runs/none/events"]
INSTANCE += ["POST /runs/none/gates/review/events", "GET /assemblies"]
PUBLISH = [f"PUT /assemblies/{'0' * 64}"]

NOBODY: dict[str, str] = {}
STRANGER = {"Authorization": "Bearer who"}
BASIC = {"Authorization": "Basic instance-token"}
EMPTY = {"Authorization": "Bearer "}
INSTANCE_HEADER = {"Authorization": "bearer  instance-token "}
PUBLISHER = {"Authorization": "Bearer publish-token"}


@pytest.mark.parametrize(
    ("headers", "opens"),
    [
        (NOBODY, None),
        (STRANGER, None),
        (BASIC, None),
        (EMPTY, None),
        (INSTANCE_HEADER, INSTANCE),
        (PUBLISHER, PUBLISH),
    ],
)
async def test_each_band_opens_to_its_principal_only(
    bench: Any, headers: dict[str, str], opens: list[str] | None
) -> None:
    for route in (*OPEN, *INSTANCE, *PUBLISH):
        method, path = route.split()
        answer = await bench.client.request(method, path, headers=headers)
        if route in OPEN:
            assert answer.status_code == 200, route
        elif opens is None:
            assert (answer.status_code, answer.json()) == (401, {"error": "unauthorized"}), route
        elif route in opens:
            assert answer.status_code not in (401, 403), route
        else:
            assert answer.status_code == 403, route
            assert list(answer.json()) == ["error"], route


async def served(bench: Any) -> set[tuple[str, str]]:
    """Return method and path of every route, with `{}` for each part that varies."""
    document = (await bench.client.get("/openapi.json")).json()
    found = {
        (method.upper(), re.sub(r"\{[^}]*\}", "{}", path))
        for path, methods in document["paths"].items()
        for method in methods
    }
    assert len(found) > 10
    return found


async def test_the_table_above_names_every_route(bench: Any) -> None:
    named = [route.split("?")[0].split() for route in OPEN + INSTANCE + PUBLISH]
    for method, path in await served(bench):
        pattern = re.compile(re.escape(path).replace(r"\{\}", "[^/]+"))
        assert any(method == m and pattern.fullmatch(p) for m, p in named), f"{method} {path}"


async def test_the_page_of_the_api_names_every_route_and_no_other(bench: Any) -> None:
    page = Path(__file__).parents[3] / "docs" / "http-api.md"
    stated = re.findall(r"`(GET|POST|PUT) (/[^`?]*)", page.read_text())

    assert {(m, re.sub(r"\{[^}]*\}", "{}", path)) for m, path in stated} == await served(bench)


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
    for body in (b"", b"{", b"[1]", b'"x"', b"null", b"NaN", b'{"a": NaN}', b"[" * 100_000):
        answer = await bench.client.post(
            "/workflows/gate/runs", content=body, headers=INSTANCE_HEADER
        )
        assert answer.status_code == 201, body[:20]


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
    assert "/assemblies/{hash_}" in paths
    assert "/runs/{run}/gates/{gate}/events" in paths
