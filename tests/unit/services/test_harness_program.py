"""The first form of the Harness: it opens to its bearer alone, and refuses what it cannot do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jr2 import names, signed
from tests.unit.services.served import Served, fails_to_start, served

MODULE = "jr2_runtime.harness"
BEARER = signed.harness_bearer(b"k" * 32, names.INSTANCE_HARNESS)
DIGEST = {names.ENV_HARNESS_TOKEN_DIGEST: signed.bearer_digest(BEARER)}
OPEN = {"Authorization": f"Bearer {BEARER}"}
CONVERSATION = "/agents/planner/run-1"


@pytest.fixture(scope="module")
def menu_only() -> Iterator[Served]:
    with served(MODULE, **DIGEST, **{names.ENV_MENU_ONLY: "1"}) as found:
        yield found


def test_the_health_check_is_open(menu_only: Served) -> None:
    answer = menu_only.client.get("/healthz")
    assert (answer.status_code, answer.json()) == (
        200,
        {"ok": True, "version": names.KIT_VERSION},
    )


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {BEARER}x"},
        {"Authorization": f"Basic {BEARER}"},
        {"Authorization": BEARER},
        {"Authorization": f"Bearer {signed.bearer_digest(BEARER)}"},
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", CONVERSATION), ("GET", CONVERSATION), ("GET", "/no-route"), ("PUT", "/healthz/x")],
)
def test_without_the_bearer_nobody_learns_a_route(
    menu_only: Served, header: dict[str, str], method: str, path: str
) -> None:
    answer = menu_only.client.request(method, path, headers=header)
    assert (answer.status_code, answer.json()) == (401, {"error": "unauthorized"})


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("POST", CONVERSATION, 501, {"error": "this Harness runs no Turns yet"}),
        ("GET", CONVERSATION, 404, {"error": "no such conversation"}),
        ("POST", f"{CONVERSATION}/abort", 200, {"aborted": False}),
        ("POST", "/attach", 403, {"error": "this Harness is for Agents without a workspace"}),
        ("PUT", CONVERSATION, 405, {"error": "method not allowed"}),
        ("GET", "/no-route", 404, {"error": "not found"}),
    ],
)
def test_the_orchestrator_is_told_what_is_not_done(
    menu_only: Served, method: str, path: str, status: int, body: object
) -> None:
    answer = menu_only.client.request(method, path, headers=OPEN, json={"message": "hi"})
    assert (answer.status_code, answer.json()) == (status, body)


def test_in_a_sandbox_it_attaches_no_repos_yet_and_ends_when_told() -> None:
    with served(MODULE, **DIGEST) as found:
        answer = found.client.post("/attach", headers=OPEN, json={})
        assert answer.status_code == 501
        code, log = found.stop()
    assert code == 0
    assert log[-1]["message"] == "stopped"
    assert BEARER not in str(log)


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ({}, "JR2_HARNESS_TOKEN_SHA256 is not set"),
        (
            {names.ENV_HARNESS_TOKEN_DIGEST: "c2hvcnQ"},
            "JR2_HARNESS_TOKEN_SHA256 is no base64url of a SHA-256",
        ),
        ({**DIGEST, "PORT": "eighty"}, "PORT is no port"),
    ],
)
def test_it_does_not_start_open_to_anybody(own: dict[str, str], reason: str) -> None:
    said = fails_to_start(MODULE, **own)
    assert said["message"] == "the Harness cannot start"
    assert said["reason"] == reason
