"""`jr2 down` and what the Instances of a cluster share, with real objects on a real API server.

The objects are those that a converge declares, applied as it applies them; no pod runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from jr2 import names
from jr2_infra.closed_list import CLUSTER_OBJECTS, SANDBOX, SYSTEM_OBJECTS
from tests.apiserver.conftest import Instance, NewInstance
from tests.apiserver.derived.conftest import apply_all, wanted_objects, world_of
from tests.apiserver.server import ApiServer

NAME = "leaves"


@pytest.fixture(scope="module")
def instance(new_instance: NewInstance) -> Instance:
    """The Instance that is taken away."""
    return new_instance(NAME)


@pytest.fixture
def server(own_server: ApiServer) -> ApiServer:
    """A cluster with one Instance on it, whatever the test before left."""
    for space in own_server.get("/api/v1/namespaces")["items"]:
        if names.LABEL_INSTANCE in (space["metadata"].get("labels") or {}):
            path = f"/api/v1/namespaces/{space['metadata']['name']}"
            own_server.patch(path, {"metadata": {"labels": {names.LABEL_INSTANCE: None}}})
    deploy(own_server, NAME)
    return own_server


def deploy(server: ApiServer, name: str) -> None:
    """Apply every object that a converge of an Instance declares."""
    apply_all(server, wanted_objects(world_of(server, name)))


def shared(server: ApiServer) -> dict[str, str]:
    """Return the resourceVersion of each shared object that is there, by its path."""
    places = [
        *(kind.path(name=name) for kind, name in CLUSTER_OBJECTS),
        *(kind.path(names.SYSTEM_NAMESPACE, name) for kind, name in SYSTEM_OBJECTS),
    ]
    found = {path: server.get(path) for path in places}
    return {
        path: str(obj["metadata"]["resourceVersion"])
        for path, obj in found.items()
        if obj is not None
    }


def down(instance: Instance, server: ApiServer, *more: str, code: int = 0) -> list[str]:
    done = instance.jr2(
        "down", "--context", server.context, "--yes", *more, code=code, kubeconfig=server.kubeconfig
    )
    return done.stderr.splitlines()


def sandbox(server: ApiServer, namespace: str, **metadata: Any) -> None:
    server.post(
        SANDBOX.path(namespace),
        {
            "apiVersion": SANDBOX.api_version,
            "kind": SANDBOX.kind,
            "metadata": {"name": "ws-1", "namespace": namespace, **metadata},
            "spec": spec_of(server),
        },
    )


def spec_of(server: ApiServer) -> Mapping[str, Any]:
    """Return a spec that the schema takes: each field that it needs, with a value of its type."""
    crd = server.get(
        f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{names.SANDBOXES_CRD}"
    )
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    made = filled(schema)
    assert isinstance(made, dict)
    return made


def filled(schema: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        needed = schema.get("required") or []
        return {key: filled(schema["properties"][key]) for key in needed}
    if kind == "array":
        return [filled(schema["items"])] * int(schema.get("minItems", 0))
    if kind == "string":
        pattern = str(schema.get("pattern", ""))
        return next(text for text in ("a", "1", "a/b", "https://a/b") if re.search(pattern, text))
    return {"integer": 1, "boolean": True}[str(kind)]


def test_one_instance_goes_and_what_is_shared_stays(instance: Instance, server: ApiServer) -> None:
    deploy(server, "other")
    sandbox(server, NAME)
    before = shared(server)
    others = server.get("/api/v1/namespaces/other")

    assert down(instance, server)[-1] == "removed"

    assert server.get(f"/api/v1/namespaces/{NAME}") is None
    assert shared(server) == before
    assert server.get("/api/v1/namespaces/other") == others
    # Again, there is nothing left to take away.
    last = down(instance, server, code=1)[-1]
    assert last.startswith(f'error: not deployed here — instance "{NAME}" is not in context ')


def test_all_names_the_other_instances_and_removes_nothing(
    instance: Instance, server: ApiServer
) -> None:
    deploy(server, "other")
    server.add_namespace("renamed", {names.LABEL_INSTANCE: "third"})
    before, own = shared(server), server.get(f"/api/v1/namespaces/{NAME}")

    assert down(instance, server, "--all", code=1)[-1] == (
        'refusing: other instances on tests use the operator: "other" (namespace other), "third" '
        "(namespace renamed) — --all would stop their Sandboxes; with --force it removes the "
        "operator all the same. Nothing was removed."
    )

    assert shared(server) == before
    assert server.get(f"/api/v1/namespaces/{NAME}") == own


def test_all_with_force_takes_what_is_shared_and_leaves_the_other_instances(
    instance: Instance, server: ApiServer
) -> None:
    deploy(server, "other")

    assert down(instance, server, "--all", "--force")[-1] == "removed"

    assert shared(server) == {}
    assert server.get(f"/api/v1/namespaces/{NAME}") is None
    kept = server.get(f"/apis/apps/v1/namespaces/other/deployments/{names.ORCHESTRATOR}")
    assert kept is not None


def test_all_without_other_instances_leaves_nothing(instance: Instance, server: ApiServer) -> None:
    sandbox(server, NAME)
    # A foreign object in our own system namespace goes with it; one elsewhere stays.
    server.add_namespace("foreign")

    assert down(instance, server, "--all")[-1] == "removed"

    assert shared(server) == {}
    assert server.get(f"/api/v1/namespaces/{NAME}") is None
    assert server.get(f"/api/v1/namespaces/{names.SYSTEM_NAMESPACE}") is None
    assert server.get("/api/v1/namespaces/foreign") is not None


def test_the_namespace_of_another_instance_is_refused(
    instance: Instance, server: ApiServer
) -> None:
    deploy(server, "other")
    before = server.get("/api/v1/namespaces/other")

    said = down(instance, server, "-n", "other", code=1)

    assert said[-2] == (
        'refusing: namespace "other" on tests belongs to another instance ("other")'
    )
    assert server.get("/api/v1/namespaces/other") == before
