"""A namespace that will not go (field case 3), on a real API server with its namespace controller.

Two Sandboxes carry the finalizer of some other tool. `jr2 up` and `jr2 down` say what holds the
namespace, who holds it, and the command that shows it; neither takes a finalizer away.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Final

import pytest

from jr2 import names
from jr2.errors import StepFailed
from jr2_infra import crds, down
from jr2_infra.api import Api
from jr2_infra.closed_list import SANDBOX
from jr2_infra.facts import holding
from jr2_infra.rules import Place
from tests.apiserver.conftest import Instance, NewInstance
from tests.apiserver.derived.conftest import apply_all
from tests.apiserver.server import ApiServer
from tests.reporter import Reporter
from tests.waiting import wait_for

NAME: Final = "stuck"
HOLD: Final = "example.com/hold"
SERVICES: Final = "/apis/apiregistration.k8s.io/v1/apiservices"
DEAD: Final = "v1.dead.example.com"
LISTS: Final = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
"""Asks for every kind of every group at once, as a controller does."""
_numbers = itertools.count(1)
_PART: Final = {"memory": "64Mi", "cpu": "50m"}
SPEC: Final = {
    "image": "i",
    "runtime": "r",
    "custodian": "c",
    "size": {"pod": {"memory": "1Gi", "cpu": "1"}, "harness": _PART, "custodian": _PART},
}


def going(space: str) -> tuple[str, ...]:
    """Return what is said of a namespace that two Sandboxes hold."""
    return (
        f'namespace "{space}" on tests is being deleted, and is held:',
        "  NamespaceContentRemaining: Some resources are remaining: sandboxes.core.jr2.dev has 2 "
        "resource instances",
        "  NamespaceFinalizersRemaining: Some content in the namespace has finalizers remaining: "
        f"{HOLD} in 2 resource instances",
        f"  Sandbox a is held by {HOLD}",
        f"  Sandbox b is held by {HOLD}",
        f"  see: kubectl -n {space} get sandboxes.core.jr2.dev -o yaml",
        f"  see: kubectl get namespace {space} -o yaml",
    )


@pytest.fixture(scope="module")
def instance(new_instance: NewInstance) -> Instance:
    return new_instance(NAME)


@pytest.fixture(scope="module")
def server(own_server: ApiServer) -> ApiServer:
    """A cluster with the CRDs of jr2, of its own: its namespaces stay for ever."""
    apply_all(own_server, list(crds.load()))
    with own_server.kube_context().http() as http:
        # A new kind answers 404, then 429 while its storage is made.
        wait_for("the kind is served", lambda: http.get(SANDBOX.path("default")).is_success)
        # What takes a namespace away looks for kinds there, and would leave the others behind.
        wait_for(
            "the kind is listed", lambda: SANDBOX.plural in http.get("/apis", headers=LISTS).text
        )
    return own_server


@pytest.fixture
def space(server: ApiServer) -> str:
    """A namespace of the Instance."""
    name = f"{NAME}-{next(_numbers)}"
    server.add_namespace(name, {names.LABEL_INSTANCE: NAME})
    return name


def hold(server: ApiServer, space: str) -> dict[str, str]:
    """Make two Sandboxes that another tool holds, and return their resourceVersions."""
    found: dict[str, str] = {}
    for name in ("a", "b"):
        made = server.post(
            SANDBOX.path(space),
            {
                "apiVersion": SANDBOX.api_version,
                "kind": SANDBOX.kind,
                "metadata": {"name": name, "finalizers": [HOLD]},
                "spec": SPEC,
            },
        )
        found[name] = str(made["metadata"]["uid"])
    return found


def conditions(server: ApiServer, space: str, kind: str) -> list[dict[str, Any]]:
    found = server.get(f"/api/v1/namespaces/{space}")
    assert found is not None
    return [
        one
        for one in found["status"].get("conditions") or []
        if one["type"] == kind and one["status"] == "True"
    ]


def test_up_refuses_with_what_holds_it_and_down_says_the_same(
    server: ApiServer, instance: Instance, space: str
) -> None:
    said_of = going(space)
    uids = hold(server, space)
    server.remove(f"/api/v1/namespaces/{space}")
    wait_for("it is held", lambda: conditions(server, space, "NamespaceFinalizersRemaining"))
    before = server.get(SANDBOX.path(space))["items"]

    said = instance.up(server, "-n", space).splitlines()

    assert said[-8:] == [f"refusing: {said_of[0]}", *said_of[1:], "Nothing was applied."]
    assert server.get(SANDBOX.path(space))["items"] == before
    place = Place(instance=NAME, context=server.context, namespace=space)
    clock = iter(range(0, 10_000, 100))
    with server.kube_context().http() as http, pytest.raises(StepFailed) as caught:
        down.wait_until_gone(
            Api(http),
            place,
            Reporter(warns=True),
            sleep=lambda _: None,
            clock=lambda: float(next(clock)),
        )
    assert caught.value.printed.splitlines() == [f"error: {said_of[0]}", *said_of[1:]]
    for name, uid in uids.items():
        held = server.get(SANDBOX.path(space, name))
        assert held is not None
        assert (held["metadata"]["finalizers"], held["metadata"]["uid"]) == ([HOLD], uid)


def test_down_waits_for_the_sandboxes_before_it_deletes_the_namespace(
    server: ApiServer, space: str
) -> None:
    hold(server, space)
    clock = iter(range(0, 10_000, 100))

    with server.kube_context().http() as http, pytest.raises(StepFailed) as caught:
        down.delete_all(
            Api(http), SANDBOX, space, sleep=lambda _: None, clock=lambda: float(next(clock))
        )

    assert caught.value.printed.splitlines() == [
        f'error: namespace "{space}" still holds:',
        f"  Sandbox a is held by {HOLD}",
        f"  Sandbox b is held by {HOLD}",
        f"  see: kubectl -n {space} get sandboxes -o yaml",
    ]
    assert (server.get(f"/api/v1/namespaces/{space}") or {})["status"]["phase"] == "Active"


@pytest.fixture
def dead_group(server: ApiServer) -> Iterator[None]:
    """An API group that another server should answer for; nobody does."""
    server.post(
        SERVICES,
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": DEAD},
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
    try:
        wait_for("it is known to be dead", lambda: _is_known_to_be_dead(server))
        yield
    finally:
        server.remove(f"{SERVICES}/{DEAD}")
        wait_for("nobody asks for it any more", lambda: not _is_listed(server))


def test_an_api_group_that_does_not_answer_is_named(
    server: ApiServer, instance: Instance, space: str, dead_group: None
) -> None:
    server.remove(f"/api/v1/namespaces/{space}")
    wait_for("it is stuck", lambda: conditions(server, space, "NamespaceDeletionDiscoveryFailure"))

    said = instance.up(server, "-n", space).splitlines()

    assert said[-4:] == [
        "  the API group dead.example.com/v1 does not answer",
        f"  see: kubectl get apiservice {DEAD}",
        f"  see: kubectl get namespace {space} -o yaml",
        "Nothing was applied.",
    ]


def _is_listed(server: ApiServer) -> bool:
    groups = server.get("/apis")["groups"]
    return "dead.example.com" in {group["name"] for group in groups}


def _is_known_to_be_dead(server: ApiServer) -> bool:
    found = server.get(f"{SERVICES}/{DEAD}")
    return any(
        one["type"] == "Available" and one["status"] == "False"
        for one in (found or {}).get("status", {}).get("conditions", [])
    )


def test_what_cannot_be_read_is_left_out(server: ApiServer, space: str) -> None:
    namespace = {
        "metadata": {"name": space},
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
    server.post(f"/api/v1/namespaces/{space}/configmaps", made)
    with server.kube_context().http() as http:
        lines = holding.what_holds(Api(http), namespace)

    assert f"ConfigMap kept is held by {HOLD}" in lines
    assert f"see: kubectl -n {space} get configmaps -o yaml" in lines
