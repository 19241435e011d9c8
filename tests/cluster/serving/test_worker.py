"""What the code of a Workflow sees and gets from inside the worker container of a real pod."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest

from jr2 import names

from ..conftest import Instance

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

API = "kubernetes.default.svc"
SAY = [
    "GET /runs HTTP/1.1\r\nHost: localhost:4000\r\n\r\n",
    f"PUT /assemblies/{'0' * 64} HTTP/1.1\r\nHost: localhost:4000\r\nContent-Length: 0\r\n\r\n",
]


@pytest.fixture(scope="module")
def found(instance: Instance) -> dict[str, Any]:
    """What the Workflow found."""
    addresses = [("127.0.0.1", names.ORCHESTRATOR_PORT)]
    with instance.forward() as client:
        run = client.post("/workflows/prying/runs", json={}).json()["runId"]
        sent = client.post(
            f"/runs/{run}/gates/waiting/events",
            json={"type": "pry", "addresses": addresses, "say": SAY},
        )
        assert sent.status_code == 200, sent.text
        shown = client.get(f"/runs/{run}").json()
    assert shown["status"] == "active", json.dumps(shown)[:3000]
    context: dict[str, Any] = shown["context"]
    return context


@pytest.fixture(scope="module")
def secrets(instance: Instance) -> dict[str, bytes]:
    """Each value that the Instance keeps in a Secret."""
    items = instance.get("secrets")["items"]
    return {
        f"{item['metadata']['name']}/{key}": base64.b64decode(value)
        for item in items
        for key, value in item.get("data", {}).items()
    }


def test_no_file_is_a_secret_a_token_or_the_store(
    found: dict[str, Any], secrets: dict[str, bytes]
) -> None:
    assert len(found["files"]) > 10, "it did look around"
    digests = {hashlib.sha256(value).hexdigest(): name for name, value in secrets.items()}
    assert digests
    assert {path: digests[d] for path, d in found["files"].items() if d in digests} == {}
    private = (names.STATE_PATH, names.VALUES_PATH, names.SERVICE_ACCOUNT_PATH)
    assert [path for path in found["files"] if path.startswith(private)] == []
    assert [path for path in found["files"] if names.STATE_DATABASE in path] == []


def test_it_sees_the_processes_of_its_container_alone(found: dict[str, Any]) -> None:
    assert "1" in found["processes"]
    # Of the one that starts the others it sees the command only, and the file of its own is no
    # longer its own.
    assert found["environments"] == ["PermissionError"] * len(found["processes"])
    of_others = [
        command
        for command in found["processes"].values()
        if "orchestrator" in command or "pause" in command
    ]
    assert of_others == []


def test_no_environment_holds_a_secret(found: dict[str, Any], secrets: dict[str, bytes]) -> None:
    texts = [json.dumps(found["environment"]), *found["environments"]]
    assert all(value.decode("latin-1") not in text for text in texts for value in secrets.values())
    assert [name for name in found["environment"] if "KUBERNETES" in name or "TOKEN" in name] == []


def test_it_writes_only_where_it_may(found: dict[str, Any]) -> None:
    places = ("/tmp", names.SOCKET_DIR)
    assert any(path.startswith(places) for path in found["writable"])
    assert [path for path in found["writable"] if not path.startswith(places)] == []


def test_nothing_that_it_tries_is_given(found: dict[str, Any]) -> None:
    tries = found["tries"]
    with_network = {what: got for what, got in tries.items() if "HTTP" in got or " at " in what}
    refused = {"PermissionError", "FileNotFoundError", "OSError", "ValueError"}
    assert len(tries) - len(with_network) == 12
    assert {
        w: got for w, got in tries.items() if w not in with_network and got not in refused
    } == {}


def test_the_orchestrator_asks_it_for_a_token_as_anybody_else(found: dict[str, Any]) -> None:
    [get, put] = [f"{text.split(' HTTP')[0]} at {names.ORCHESTRATOR_PORT}" for text in SAY]
    assert found["tries"][get].startswith("HTTP/1.1 401"), found["tries"]
    assert found["tries"][put].startswith("HTTP/1.1 401"), found["tries"]
