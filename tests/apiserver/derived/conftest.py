"""An Instance whose objects stand on a real API server, as a converge left them."""

from __future__ import annotations

from typing import Any

from jr2 import names
from jr2_infra import closed_list
from jr2_infra.api import Api
from jr2_infra.closed_list import Kind
from jr2_infra.resources import KubernetesResource
from jr2_infra.rules import Place
from tests.apiserver.server import ApiServer
from tests.unit.infra.converge.conftest import World
from tests.waiting import wait_for

LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")


def world_of(server: ApiServer, name: str) -> World:
    """Return an Instance of that name and namespace which converges to a server."""
    world = World()
    world.place = Place(instance=name, context=server.context, namespace=name)
    world.wants = world.wanting(place=world.place)
    return world


def wanted_objects(world: World) -> list[dict[str, Any]]:
    """Return the objects that the Instance wants, in the order of the program."""
    return [
        dict(resource.object)
        for resource in world.plan().program.resources
        if isinstance(resource, KubernetesResource)
    ]


def apply_all(server: ApiServer, objects: list[dict[str, Any]]) -> None:
    """Apply objects as jr2 does, and wait until nobody writes to them any more."""
    with server.kube_context().http() as http:
        api = Api(http)
        for obj in objects:
            api.apply(closed_list.kind_of(obj["kind"]), obj)
        wait_for_definitions(api)


def wait_for_definitions(api: Api) -> None:
    """Wait until the API server has said of each definition that it serves the kind.

    It writes that into the definition a moment after it is stored, which moves its resourceVersion.
    """

    def is_served() -> bool:
        return all(
            {"type": "Established", "status": "True"}.items() <= one.items()
            for obj in api.objects(closed_list.CRD)
            for one in _established(obj)
        )

    wait_for("each definition is served", is_served)


def _established(definition: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the condition, or one that does not hold as long as there is none."""
    found = (definition.get("status") or {}).get("conditions") or []
    return [one for one in found if one["type"] == "Established"] or [{}]


def versions(server: ApiServer, *namespaces: str) -> dict[str, str]:
    """Return the resourceVersion of every object that a converge could touch, by its path.

    Args:
        server: the server.
        namespaces: the namespaces that are looked at, beside the system's own.
    """
    spaces = {None, names.SYSTEM_NAMESPACE, *namespaces}
    kinds = {
        *closed_list.instance_kinds(),
        *closed_list.system_kinds(),
        *(kind for kind, _ in closed_list.CLUSTER_OBJECTS),
        LEASE,
    }
    found: dict[str, str] = {}
    with server.kube_context().http() as http:
        api = Api(http)
        for kind in sorted(kinds, key=lambda kind: kind.kind):
            # Those of every namespace in one answer.
            for obj in api.objects(kind):
                metadata = obj["metadata"]
                space = metadata.get("namespace")
                if space in spaces:
                    found[kind.path(space, metadata["name"])] = metadata["resourceVersion"]
    return found
