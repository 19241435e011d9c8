"""A namespace that will not go (field case 3), on a real API server with its namespace controller.

Two Sandboxes carry the finalizer of some other tool. `jr2 up` and `jr2 down` say what holds the
namespace, who holds it, and the command that shows it; neither takes a finalizer away.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import pytest

from jr2 import names
from jr2.errors import StepFailed
from jr2_infra import crds, down
from jr2_infra.api import Api
from jr2_infra.closed_list import SANDBOX, kind_of
from jr2_infra.facts import holding
from jr2_infra.rules import Place
from tests.apiserver.conftest import Instance, NewInstance, StartApiServer
from tests.apiserver.server import ApiServer
from tests.unit.infra.conftest import Said

NAME: Final = "stuck"
SPACE: Final = f"/api/v1/namespaces/{NAME}"
HOLD: Final = "example.com/hold"
_PART: Final = {"memory": "64Mi", "cpu": "50m"}
SPEC: Final = {
    "image": "i",
    "runtime": "r",
    "custodian": "c",
    "size": {"pod": {"memory": "1Gi", "cpu": "1"}, "harness": _PART, "custodian": _PART},
}
GOING: Final = (
    f'namespace "{NAME}" on tests is being deleted, and is held:',
    "  NamespaceContentRemaining: Some resources are remaining: sandboxes.core.jr2.dev has 2 "
    "resource instances",
    "  NamespaceFinalizersRemaining: Some content in the namespace has finalizers remaining: "
    f"{HOLD} in 2 resource instances",
    f"  Sandbox a is held by {HOLD}",
    f"  Sandbox b is held by {HOLD}",
    f"  see: kubectl -n {NAME} get sandboxes.core.jr2.dev -o yaml",
    f"  see: kubectl get namespace {NAME} -o yaml",
)


@pytest.fixture(scope="module")
def instance(new_instance: NewInstance) -> Instance:
    return new_instance(NAME)


@pytest.fixture
def server(start_api_server: StartApiServer) -> ApiServer:
    """A cluster with the CRDs of jr2 and the namespace of the Instance."""
    made = start_api_server()
    with made.kube_context().http() as http:
        for definition in crds.load():
            Api(http).apply(kind_of("CustomResourceDefinition"), definition)
        # A new kind answers 404, then 429 while its storage is made.
        until(lambda: http.get(SANDBOX.path(NAME)).is_success)
    made.add_namespace(NAME, {names.LABEL_INSTANCE: NAME})
    return made


def until(holds: Callable[[], object]) -> None:
    limit = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.1)


def hold(server: ApiServer) -> dict[str, str]:
    """Make two Sandboxes that another tool holds, and return their resourceVersions."""
    found: dict[str, str] = {}
    for name in ("a", "b"):
        made = server.post(
            SANDBOX.path(NAME),
            {
                "apiVersion": SANDBOX.api_version,
                "kind": SANDBOX.kind,
                "metadata": {"name": name, "finalizers": [HOLD]},
                "spec": SPEC,
            },
        )
        found[name] = str(made["metadata"]["uid"])
    return found


def conditions(server: ApiServer, kind: str) -> list[dict[str, Any]]:
    found = server.get(SPACE)
    assert found is not None
    return [
        one
        for one in found["status"].get("conditions") or []
        if one["type"] == kind and one["status"] == "True"
    ]


def test_up_refuses_with_what_holds_it_and_down_says_the_same(
    server: ApiServer, instance: Instance
) -> None:
    uids = hold(server)
    server.remove(SPACE)
    until(lambda: conditions(server, "NamespaceFinalizersRemaining"))
    before = server.get(SANDBOX.path(NAME))["items"]

    said = instance.up(server).splitlines()

    assert said[-8:] == [f"refusing: {GOING[0]}", *GOING[1:], "Nothing was applied."]
    assert server.get(SANDBOX.path(NAME))["items"] == before
    place = Place(instance=NAME, context=server.context, namespace=NAME)
    clock = iter(range(0, 10_000, 100))
    with server.kube_context().http() as http, pytest.raises(StepFailed) as caught:
        down.wait_until_gone(
            Api(http), place, Said(), sleep=lambda _: None, clock=lambda: float(next(clock))
        )
    assert caught.value.printed.splitlines() == [f"error: {GOING[0]}", *GOING[1:]]
    for name, uid in uids.items():
        held = server.get(SANDBOX.path(NAME, name))
        assert held is not None
        assert (held["metadata"]["finalizers"], held["metadata"]["uid"]) == ([HOLD], uid)


def test_down_waits_for_the_sandboxes_before_it_deletes_the_namespace(server: ApiServer) -> None:
    hold(server)
    clock = iter(range(0, 10_000, 100))

    with server.kube_context().http() as http, pytest.raises(StepFailed) as caught:
        down.delete_all(
            Api(http), SANDBOX, NAME, sleep=lambda _: None, clock=lambda: float(next(clock))
        )

    assert caught.value.printed.splitlines() == [
        f'error: namespace "{NAME}" still holds:',
        f"  Sandbox a is held by {HOLD}",
        f"  Sandbox b is held by {HOLD}",
        f"  see: kubectl -n {NAME} get sandboxes -o yaml",
    ]
    assert (server.get(SPACE) or {})["status"]["phase"] == "Active"


def test_an_api_group_that_does_not_answer_is_named(server: ApiServer, instance: Instance) -> None:
    server.post(
        "/apis/apiregistration.k8s.io/v1/apiservices",
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1.dead.example.com"},
            "spec": {
                "group": "dead.example.com",
                "version": "v1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {"name": "gone", "namespace": "default"},
            },
        },
    )
    until(lambda: _is_known_to_be_dead(server))
    server.remove(SPACE)
    until(lambda: conditions(server, "NamespaceDeletionDiscoveryFailure"))

    said = instance.up(server).splitlines()

    assert said[-4:] == [
        "  the API group dead.example.com/v1 does not answer",
        "  see: kubectl get apiservice v1.dead.example.com",
        f"  see: kubectl get namespace {NAME} -o yaml",
        "Nothing was applied.",
    ]


def _is_known_to_be_dead(server: ApiServer) -> bool:
    found = server.get("/apis/apiregistration.k8s.io/v1/apiservices/v1.dead.example.com")
    return any(
        one["type"] == "Available" and one["status"] == "False"
        for one in (found or {}).get("status", {}).get("conditions", [])
    )


def test_what_cannot_be_read_is_left_out(server: ApiServer) -> None:
    namespace = {
        "metadata": {"name": NAME},
        "status": {
            "phase": "Terminating",
            "conditions": [
                {
                    "type": "NamespaceContentRemaining",
                    "status": "True",
                    "message": "Some resources are remaining: gone.example.com has 1 resource "
                    "instances, configmaps. has 1 resource instances",
                }
            ],
        },
    }
    made = {"metadata": {"name": "kept", "finalizers": [HOLD]}}
    server.post(f"{SPACE}/configmaps", made)
    with server.kube_context().http() as http:
        lines = holding.what_holds(Api(http), namespace)

    assert f"ConfigMap kept is held by {HOLD}" in lines
    assert f"see: kubectl -n {NAME} get configmaps -o yaml" in lines
