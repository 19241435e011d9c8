"""What is read of a cluster, and what is not kept of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from jr2 import names
from jr2.errors import Refusal, StepFailed
from jr2_infra.api import Api, ApiError
from jr2_infra.closed_list import CLUSTER_OBJECTS, SECRET
from jr2_infra.facts import cluster

Handler = Callable[[httpx2.Request], httpx2.Response]


def api(handle: Handler) -> Api:
    return Api(httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(handle)))


def listed(*found: dict[str, Any], token: str = "") -> httpx2.Response:
    return httpx2.Response(200, json={"items": list(found), "metadata": {"continue": token}})


def named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "demo"}}


def nothing(request: httpx2.Request) -> httpx2.Response:
    """The answer of a cluster that holds nothing of ours: empty lists, and no single object."""
    single = {name for _, name in CLUSTER_OBJECTS} | {"demo"}
    if request.url.path.rpartition("/")[2] in single:
        return httpx2.Response(404, json={})
    return listed()


def test_of_the_secrets_only_those_of_the_closed_list_are_kept() -> None:
    def handle(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/api/v1/namespaces/demo/secrets":
            return listed(named(names.INSTANCE_SECRET), named("somebody-elses"))
        if request.url.path.endswith("/proxy/healthz"):
            return httpx2.Response(200, json={"ok": True, "version": "1", "hash": "ab" * 32})
        return nothing(request)

    facts = cluster.read_cluster(api(handle), "demo")
    secrets = {key.name for key in facts.live if key.kind == SECRET.kind}
    assert secrets == {names.INSTANCE_SECRET}
    assert facts.health is not None
    assert facts.health.hash == "ab" * 32


@pytest.mark.parametrize(
    "answer",
    [
        httpx2.Response(503, json={"message": "no endpoints available"}),
        httpx2.Response(200, text="<html>"),
        httpx2.Response(200, json={"version": 1}),
    ],
)
def test_an_orchestrator_that_does_not_answer_is_no_error(answer: httpx2.Response) -> None:
    def handle(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/proxy/healthz"):
            assert "authorization" not in request.headers
            return answer
        return nothing(request)

    assert cluster.read_cluster(api(handle), "demo").health is None


def test_a_list_is_read_page_by_page() -> None:
    def handle(request: httpx2.Request) -> httpx2.Response:
        if request.url.params.get("continue") == "more":
            return listed(named("second"))
        return listed(named("first"), token="more")

    found = api(handle).objects(SECRET, "demo")
    assert [(item["kind"], item["metadata"]["name"]) for item in found] == [
        ("Secret", "first"),
        ("Secret", "second"),
    ]


def test_a_read_that_is_forbidden_names_the_servers_words() -> None:
    def handle(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(403, json={"message": "secrets is forbidden", "reason": "Forbidden"})

    with pytest.raises(StepFailed, match="cannot read the cluster: secrets is forbidden"):
        cluster.read_cluster(api(handle), "demo")


def refuse(_: httpx2.Request) -> httpx2.Response:
    raise httpx2.ConnectError("[Errno 111] Connection refused")


def test_an_api_server_that_cannot_be_reached_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        cluster.read_contact(api(refuse), "dead", "demo", with_nodes=True)
    assert caught.value.printed == (
        "refusing: cannot reach the API server of dead ([Errno 111] Connection refused). "
        "Nothing was applied."
    )


@pytest.mark.parametrize("keeps", [True, False])
def test_pod_resources_are_probed_by_a_dry_run(keeps: bool) -> None:
    asked: list[httpx2.Request] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        body = json.loads(request.content)
        if not keeps:
            del body["spec"]["resources"]
        return httpx2.Response(201, json=body)

    assert cluster.keeps_pod_resources(api(handle), "demo") is keeps
    (request,) = asked
    assert (request.method, request.url.params["dryRun"]) == ("POST", "All")


def test_an_error_without_json_is_still_an_error_of_ours() -> None:
    def handle(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(502, text="bad gateway")

    with pytest.raises(ApiError) as caught:
        api(handle).get("/api/v1/pods")
    assert (caught.value.status, caught.value.message) == (502, "Bad Gateway")


def test_the_other_instances_are_named_without_ours() -> None:
    def handle(request: httpx2.Request) -> httpx2.Response:
        assert request.url.params["labelSelector"] == names.LABEL_INSTANCE
        return listed(
            *(
                {"metadata": {"name": name, "labels": {names.LABEL_INSTANCE: instance}}}
                for name, instance in (("demo", "demo"), ("b", "two"), ("a", "one"))
            )
        )

    assert cluster.other_instances(api(handle), "demo") == (("one", "a"), ("two", "b"))
