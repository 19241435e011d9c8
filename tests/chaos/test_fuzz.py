"""Requests that nobody thought of, made from the OpenAPI document: no answer is a 5xx.

Half of the requests are for things that are there, so that the fuzz gets behind the first look-up.
Each answer is one that the document states, and each error has the one body.
"""

from __future__ import annotations

import hashlib
import importlib
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode

from jr2_runtime.orchestrator.api.app import document
from tests.waiting import LIMIT

WORKFLOWS = Path(__file__).parent / "workflows"
EXAMPLES = 30
"""Requests for each route and kind of generation."""
TOKENS = ("instance", "publish", "none")


@schemathesis.serializer("application/octet-stream")
def as_it_is(context: Any, value: Any) -> bytes:
    """Send what was made for blobs; hardly any of it is one."""
    return value if isinstance(value, bytes) else str(value).encode()


schema = schemathesis.openapi.from_dict(document())
operations: dict[str, Any] = {
    f"{operation.method.upper()} {operation.path}": operation
    for operation in (each.ok() for each in schema.get_all_operations() if isinstance(each, Ok))
}
CASES = [
    (route, mode)
    for route, operation in operations.items()
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    # Any text is a path parameter, so nothing can be wrong with a request that carries no more.
    if mode is GenerationMode.POSITIVE
    or operation.body
    or any(each["in"] != "path" for each in operation.definition.raw.get("parameters", []))
]


def test_the_document_says_each_route_in_a_way_that_can_be_tried() -> None:
    stated = document()["paths"]
    assert len(operations) == sum(len(methods) for methods in stated.values())


@pytest.fixture(scope="module")
def fuzzed(served_pod: Any) -> Any:
    """A pod with two Workflows and a run that takes events."""
    sources = {name: (WORKFLOWS / f"{name}.py").read_text() for name in ("ledger", "ping")}
    assembly = served_pod.assembly(sources)
    assert served_pod.publish(assembly).status_code == 201
    served_pod.there = {
        "name": "ledger",
        "gate": "writing",
        "hash": assembly.hash,
        "sha256": hashlib.sha256(b"").hexdigest(),
        "run": served_pod.start_run("ledger"),
        "iid": "ledger/reviewer",
        "delivery": "1",
        "file": "main.js",
    }
    return served_pod


@pytest.mark.parametrize(("route", "mode"), CASES)
def test_no_request_is_answered_with_a_5xx(fuzzed: Any, route: str, mode: GenerationMode) -> None:
    operation = operations[route]
    session = importlib.import_module("requests").Session()
    session.trust_env = False
    tokens = {
        "instance": {"Authorization": f"Bearer {fuzzed.instance_token}"},
        "publish": {"Authorization": f"Bearer {fuzzed.publish_token}"},
        "none": {},
    }
    right = "publish" if operation.tags == ["publish"] else "instance"

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=operation.as_strategy(generation_mode=mode),
        is_there=st.booleans(),
        token=st.sampled_from((right, right, right, *TOKENS)),
    )
    def ask(case: Any, is_there: bool, token: str) -> None:
        if is_there:
            for name in case.path_parameters or {}:
                case.path_parameters[name] = fuzzed.there[name]
        arguments = case.as_transport_kwargs(base_url=str(fuzzed.client.base_url))
        headers = {
            name: value
            for name, value in dict(arguments.pop("headers", {})).items()
            if name.lower() not in ("host", "authorization", "content-length")
        }
        # A feed never ends: its first lines are enough.
        with session.request(
            **arguments, headers={**headers, **tokens[token]}, stream=True, timeout=LIMIT
        ) as answer:
            what = f"{route} {arguments['url']}: {answer.status_code}"
            assert answer.status_code < 500, f"{what} {answer.text}"
            if answer.headers.get("content-type", "").startswith("text/event-stream"):
                assert answer.status_code == 200
                assert next(answer.iter_lines()) != b""
                return
            # What the server itself cannot read, as another path or no HTTP, is not the route's.
            if arguments["url"].rstrip("/").count("/") - 2 == operation.path.count("/"):
                known = set(operation.definition.raw["responses"]) | {"404", "405"}
                assert str(answer.status_code) in known, what
            if answer.status_code >= 400:
                assert isinstance(answer.json()["error"], str), what

    ask()
    session.close()
    assert fuzzed.status(fuzzed.there["run"])["status"] in ("active", "cancelled")
    assert fuzzed.client.get("/readyz").status_code == 200
