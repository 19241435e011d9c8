"""`jr2 down` against an API server that holds objects by path, as a real one does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from jr2 import names
from jr2.errors import Aborted, Refusal, StepFailed
from jr2_infra import down
from jr2_infra.api import Api
from jr2_infra.closed_list import (
    CLUSTER_OBJECTS,
    INSTANCE_OBJECTS,
    NAMESPACE,
    SANDBOX,
    SYSTEM_OBJECTS,
)
from jr2_infra.report import line_code
from jr2_infra.rules import Place
from tests.reporter import Reporter

PLACE = Place(instance="demo", context="jr2-local", namespace="demo")


class Server:
    """An API server: objects by path, deletion by uid, and namespaces that take all with them."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.deleted: list[str] = []
        self.held: set[str] = set()

    def add(self, path: str, **metadata: Any) -> None:
        name = path.rpartition("/")[2]
        given = {"name": name, "uid": f"uid-{path}", "resourceVersion": "1", **metadata}
        self.objects[path] = {"metadata": given}

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        if path == "/version":
            return httpx2.Response(200, json={"gitVersion": "v1.36.3"})
        if request.method == "DELETE":
            found = self.objects.get(path)
            if found is None:
                return httpx2.Response(404, json={})
            uid = json.loads(request.content)["preconditions"]["uid"]
            if uid != found["metadata"]["uid"]:
                return httpx2.Response(409, json={"message": "uid"})
            self.deleted.append(path)
            if path not in self.held:
                self._remove(path)
            return httpx2.Response(200, json={})
        if request.method in ("POST", "PUT"):
            body = json.loads(request.content)
            body["metadata"] = {**body["metadata"], "resourceVersion": "1", "uid": "lease"}
            key = path if request.method == "PUT" else f"{path}/{body['metadata']['name']}"
            self.objects[key] = body
            return httpx2.Response(200, json=body)
        if path in self.objects:
            return httpx2.Response(200, json=self.objects[path])
        below = [
            obj
            for key, obj in self.objects.items()
            if key.startswith(f"{path}/") and "/" not in key.removeprefix(f"{path}/")
        ]
        selector = request.url.params.get("labelSelector")
        if selector:
            below = [obj for obj in below if selector in (obj["metadata"].get("labels") or {})]
        listed = path.endswith(("s", "es")) and not path.endswith("kube-system")
        return (
            httpx2.Response(200, json={"items": below}) if listed else httpx2.Response(404, json={})
        )

    def _remove(self, path: str) -> None:
        del self.objects[path]
        if path.startswith("/api/v1/namespaces/"):
            inside = f"/namespaces/{path.rpartition('/')[2]}/"
            self.objects = {key: obj for key, obj in self.objects.items() if inside not in key}


@pytest.fixture
def server() -> Server:
    """A cluster with the Instance `demo`, the shared parts, and a namespace of somebody else."""
    made = Server()
    made.add(NAMESPACE.path(name="demo"), labels={names.LABEL_INSTANCE: "demo"})
    made.add(NAMESPACE.path(name="theirs"), labels={})
    for kind, name in INSTANCE_OBJECTS:
        made.add(kind.path("demo", name))
    for kind, name in SYSTEM_OBJECTS:
        made.add(kind.path(names.SYSTEM_NAMESPACE, name))
    for kind, name in CLUSTER_OBJECTS:
        made.add(kind.path(name=name))
    return made


Remove = Callable[..., Reporter]


@pytest.fixture
def remove(server: Server) -> Remove:
    def run(
        *, all_: bool = False, yes: bool = True, force: bool = False, answer: bool = False
    ) -> Reporter:
        reporter = Reporter(answer=answer, warns=True)
        client = httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(server))
        down.remove(client, PLACE, all_=all_, yes=yes, force=force, reporter=reporter)
        return reporter

    return run


def test_the_namespace_goes_last_and_nothing_else_goes(server: Server, remove: Remove) -> None:
    before = set(server.objects)
    reporter = remove()
    assert server.deleted[-1] == "/api/v1/namespaces/demo"
    assert reporter.lines == ["namespace: deleting demo"]
    gone = before - set(server.objects)
    assert gone == {
        "/api/v1/namespaces/demo",
        *(kind.path("demo", name) for kind, name in INSTANCE_OBJECTS),
    }


def test_a_person_is_asked_and_may_say_no(server: Server, remove: Remove) -> None:
    before = dict(server.objects)
    with pytest.raises(Aborted, match="aborted — nothing was changed"):
        remove(yes=False)
    assert server.objects == before
    reporter = remove(yes=False, answer=True)
    assert reporter.questions == [
        'remove instance "demo" from context jr2-local (delete namespace "demo" with its runs)?'
    ]


@pytest.mark.parametrize("labels", [None, {}])
def test_what_is_not_deployed_is_an_error(
    server: Server, remove: Remove, labels: dict[str, str] | None
) -> None:
    del server.objects["/api/v1/namespaces/demo"]
    if labels is not None:
        server.add("/api/v1/namespaces/demo", labels=labels)
    with pytest.raises(StepFailed, match="not deployed here"):
        remove()
    assert server.deleted == []


def test_the_namespace_of_another_instance_is_refused(server: Server, remove: Remove) -> None:
    server.add("/api/v1/namespaces/demo", labels={names.LABEL_INSTANCE: "other"})
    with pytest.raises(Refusal, match="belongs to another instance"):
        remove()
    assert server.deleted == []


def test_all_takes_the_shared_parts_after_the_namespace(server: Server, remove: Remove) -> None:
    remove(all_=True)
    left = {path for path in server.objects if "/leases/" not in path and "kube-system" not in path}
    assert left == {"/api/v1/namespaces/theirs"}
    assert server.deleted.index("/api/v1/namespaces/demo") < server.deleted.index(
        "/apis/apps/v1/namespaces/jr2-system/deployments/jr2-controller-manager"
    )
    assert server.deleted[-1] == "/api/v1/namespaces/jr2-system"


def test_all_holds_the_lease_of_what_it_removes(server: Server, remove: Remove) -> None:
    """While a shared object goes, no `jr2 up` of another Instance can write one."""
    lease = "/apis/coordination.k8s.io/v1/namespaces/jr2-system/leases/jr2-converge"
    held: dict[str, bool] = {}

    def watched(request: httpx2.Request) -> httpx2.Response:
        if request.method == "DELETE":
            spec = server.objects.get(lease, {}).get("spec", {})
            held[request.url.path] = bool(spec.get("holderIdentity"))
        return server(request)

    client = httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(watched))
    down.remove(
        client, PLACE, all_=True, yes=True, force=False, reporter=Reporter(answer=False, warns=True)
    )

    assert set(held.values()) == {True}
    assert {kind.path(name=name) for kind, name in CLUSTER_OBJECTS} <= held.keys()
    assert not [path for path in server.objects if "/leases/" in path]


def test_all_looks_for_other_instances_under_the_lease(server: Server) -> None:
    """An Instance that came while the Lease was taken is not left without its operator."""

    def arriving(request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST" and "/jr2-system/leases" in request.url.path:
            server.add("/api/v1/namespaces/second", labels={names.LABEL_INSTANCE: "second"})
        return server(request)

    client = httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(arriving))
    with pytest.raises(Refusal, match=r'"second" \(namespace second\)'):
        down.remove(
            client,
            PLACE,
            all_=True,
            yes=True,
            force=False,
            reporter=Reporter(answer=False, warns=True),
        )
    assert server.deleted == []


def test_all_names_the_other_instances_and_needs_force(server: Server, remove: Remove) -> None:
    server.add("/api/v1/namespaces/second", labels={names.LABEL_INSTANCE: "second"})
    with pytest.raises(Refusal) as caught:
        remove(all_=True)
    assert '"second" (namespace second)' in str(caught.value)
    assert server.deleted == []
    remove(all_=True, force=True)
    assert "/api/v1/namespaces/jr2-system" in server.deleted
    assert "/api/v1/namespaces/second" in server.objects


def test_sandboxes_go_before_everything_else(server: Server, remove: Remove) -> None:
    path = SANDBOX.path("demo", "ws-1")
    server.add(path)
    remove()
    assert server.deleted[0] == path


def test_a_sandbox_that_is_held_is_named_with_its_finalizer(server: Server) -> None:
    path = SANDBOX.path("demo", "ws-1")
    server.add(path, finalizers=["example.com/hold"])
    server.held.add(path)
    now = [0.0]

    def sleep(_: float) -> None:
        now[0] += 60

    client = httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(server))
    with pytest.raises(StepFailed) as caught:
        down.delete_all(Api(client), SANDBOX, "demo", sleep=sleep, clock=lambda: now[0])
    assert "  Sandbox ws-1 is held by example.com/hold" in str(caught.value)


def test_a_namespace_that_does_not_go_says_what_holds_it(server: Server) -> None:
    server.objects["/api/v1/namespaces/demo"]["status"] = {
        "conditions": [
            {
                "type": "NamespaceFinalizersRemaining",
                "status": "True",
                "message": "example.com/hold in 2 resource instances",
            }
        ]
    }
    now = [0.0]

    def sleep(_: float) -> None:
        now[0] += 60

    client = httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(server))
    with pytest.raises(StepFailed, match=r"example\.com/hold in 2 resource"):
        down.wait_until_gone(
            Api(client),
            PLACE,
            Reporter(answer=False, warns=True),
            sleep=sleep,
            clock=lambda: now[0],
        )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("repo cache: waiting for rollout", "repo-cache"),
        ("assembly: abc is current", "assembly"),
        ("converged — `jr2 run <workflow>` when ready", "line"),
        ("Error: x", "line"),
    ],
)
def test_a_step_has_a_stable_code(text: str, code: str) -> None:
    assert line_code(text) == code
