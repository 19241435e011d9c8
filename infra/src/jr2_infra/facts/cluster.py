"""What the cluster says: version, namespace, nodes, and every object of the closed list.

A fact reads and never writes. The first contact reads only what the rules of steps 5 and 6 judge;
the rest is read once the namespace is known to be ours, one LIST for each kind and all at once.
Of the Secrets and ConfigMaps of the namespace only those of the closed list are kept, and those
that the config names.

Source: design §5.1 and §5.2 (Prove first), spec/converge.md §4 steps 5–8.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
from pydantic import ValidationError

from jr2 import names
from jr2.errors import StepFailed
from jr2.wire import Health

from .. import closed_list, kube
from ..api import Api, ApiError, words
from ..closed_list import CONFIG_MAP, NAMESPACE, NODE, POD, SECRET, Kind
from ..components import pods
from ..derived.live import LiveObject, LiveObjects, ObjectKey, live_objects

_CONNECTIONS: Final = 12
_PROBE_NAME: Final = "jr2-pod-resources-probe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """What the first contact says.

    Args:
        version: the version of the API server, such as `v1.36.3`.
        cluster_uid: the uid of `kube-system`, which names the cluster wherever it is called from.
        namespace: the Namespace of the Instance, or `None`.
        nodes: the nodes; empty when they were not asked for.
    """

    version: str
    cluster_uid: str
    namespace: LiveObject | None
    nodes: tuple[LiveObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What the cluster holds of this Instance and of the shared parts.

    Args:
        live: the objects of the closed list, and the Instance's Namespace.
        pods: the pods of the Instance's namespace.
        system_pods: the pods of `jr2-system`.
        health: what the Orchestrator says about itself; `None` when it does not answer.
        secrets: by name, the Secrets of the Instance's namespace that the config names and somebody
            else made; with their data.
        config_maps: the same of ConfigMaps.
    """

    live: LiveObjects
    pods: tuple[LiveObject, ...]
    system_pods: tuple[LiveObject, ...]
    health: Health | None
    secrets: Mapping[str, LiveObject] = field(default_factory=dict, repr=False)
    config_maps: Mapping[str, LiveObject] = field(default_factory=dict, repr=False)


def read_contact(api: Api, context: str, namespace: str, *, with_nodes: bool) -> Contact:
    """Read what the rules of steps 5 and 6 judge.

    Args:
        api: the API server.
        context: the name of the context, for the refusal.
        namespace: the Instance's namespace.
        with_nodes: read the nodes; not when the config names the platforms.

    Raises:
        Refusal: the API server cannot be reached, or does not let us read.
    """
    try:
        version, system, own, nodes = _at_once(
            lambda: api.get("/version"),
            lambda: api.get(NAMESPACE.path(name="kube-system")),
            lambda: api.get(NAMESPACE.path(name=namespace)),
            lambda: api.objects(NODE) if with_nodes else [],
        )
    except httpx2.HTTPError as error:
        raise kube.unreachable(context, words(error)) from error
    except ApiError as error:
        raise kube.unreachable(context, error.message) from error
    return Contact(
        version=str((version or {}).get("gitVersion", "")),
        cluster_uid=str(((system or {}).get("metadata") or {}).get("uid", "")),
        namespace=own,
        nodes=tuple(nodes),
    )


def read_cluster(
    api: Api,
    namespace: str,
    named: Collection[str] = (),
    named_maps: Collection[str] = (),
) -> ClusterFacts:
    """Read every object that a converge may compare, and the pods that prove it.

    Args:
        api: the API server.
        namespace: the Instance's namespace.
        named: the names of the Secrets that the config names.
        named_maps: the names of the ConfigMaps that it names.

    Raises:
        StepFailed: the API server refuses a read, or the connection broke.
    """
    reads: list[Callable[[], Any]] = [
        lambda: api.objects(POD, namespace),
        lambda: api.objects(POD, names.SYSTEM_NAMESPACE),
        lambda: _health(api, namespace),
        lambda: _one(api, closed_list.NAMESPACE, namespace),
    ]
    for kind in closed_list.instance_kinds():
        also = {SECRET: named, CONFIG_MAP: named_maps}.get(kind, ())
        reads.append(_lister(api, kind, namespace, closed_list.is_instance_object, also))
    for kind in closed_list.system_kinds():
        reads.append(_lister(api, kind, names.SYSTEM_NAMESPACE, closed_list.is_system_object))
    for kind, name in closed_list.CLUSTER_OBJECTS:
        reads.append(_getter(api, kind, name))
    try:
        pods, system_pods, health, *found = _at_once(*reads)
    except ApiError as error:
        raise StepFailed(f"cannot read the cluster: {error.message}") from error
    except httpx2.HTTPError as error:
        raise StepFailed(f"the API server stopped answering ({words(error)})") from error
    live = live_objects(obj for objects in found for obj in objects)
    foreign = {kind: _foreign(live, kind, namespace) for kind in (SECRET, CONFIG_MAP)}
    set_apart = {key for keys in foreign.values() for key in keys}
    return ClusterFacts(
        live={key: obj for key, obj in live.items() if key not in set_apart},
        secrets={key.name: live[key] for key in foreign[SECRET]},
        config_maps={key.name: live[key] for key in foreign[CONFIG_MAP]},
        pods=tuple(pods),
        system_pods=tuple(system_pods),
        health=health,
    )


def _foreign(live: LiveObjects, kind: Kind, namespace: str) -> list[ObjectKey]:
    """Return what was read because the config names it, and is no object of ours."""
    return [
        key
        for key in live
        if (key.kind, key.namespace) == (kind.kind, namespace)
        and not closed_list.is_instance_object(kind, key.name)
    ]


def operator_version(api: Api) -> str | None:
    """Return the Kit version of the operator that stands; `None` when there is none, or no way to see.

    A right that is missing is named by who asks for all of them.
    """
    path = closed_list.DEPLOYMENT.path(names.SYSTEM_NAMESPACE, names.OPERATOR)
    try:
        live = api.get(path)
    except ApiError:
        return None
    version = ((live or {}).get("metadata", {}).get("labels") or {}).get(names.LABEL_VERSION)
    return None if version is None else str(version)


def keeps_pod_resources(api: Api, namespace: str) -> bool:
    """Ask by a dry run whether the cluster keeps pod-level resources.

    Raises:
        ApiError: the API server refuses the pod for another reason.
        httpx2.HTTPError: the connection broke.
    """
    answer = api.dry_run_create(POD, _probe(namespace))
    return bool((answer.get("spec") or {}).get("resources"))


def other_instances(api: Api, namespace: str) -> tuple[tuple[str, str], ...]:
    """Return name and namespace of the other Instances of the cluster, sorted."""
    found = api.objects(NAMESPACE, labelSelector=names.LABEL_INSTANCE)
    return tuple(
        sorted(
            (str(item["metadata"]["labels"][names.LABEL_INSTANCE]), str(item["metadata"]["name"]))
            for item in found
            if item["metadata"]["name"] != namespace
        )
    )


def _at_once(*reads: Callable[[], Any]) -> list[Any]:
    """Make all reads at the same time and return their answers in order."""
    with ThreadPoolExecutor(max_workers=_CONNECTIONS) as pool:
        return [future.result() for future in [pool.submit(read) for read in reads]]


def _lister(
    api: Api,
    kind: closed_list.Kind,
    namespace: str,
    is_wanted: Callable[[closed_list.Kind, str], bool],
    also: Collection[str] = (),
) -> Callable[[], list[dict[str, Any]]]:
    def read() -> list[dict[str, Any]]:
        return [
            obj
            for obj in api.objects(kind, namespace)
            if is_wanted(kind, name := obj["metadata"]["name"]) or name in also
        ]

    return read


def _getter(api: Api, kind: closed_list.Kind, name: str) -> Callable[[], list[dict[str, Any]]]:
    return lambda: _one(api, kind, name)


def _one(api: Api, kind: closed_list.Kind, name: str) -> list[dict[str, Any]]:
    found = api.get(kind.path(name=name))
    return [] if found is None else [found]


def _health(api: Api, namespace: str) -> Health | None:
    """Ask the Orchestrator through the API server; no token is sent, since the route is open."""
    path = closed_list.SERVICE.path(namespace, f"{names.ORCHESTRATOR}:{names.ORCHESTRATOR_PORT}")
    try:
        text = api.text(f"{path}/proxy/healthz")
        return None if text is None else Health.model_validate_json(text)
    except (ApiError, httpx2.HTTPError, ValidationError):
        return None


def _probe(namespace: str) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _PROBE_NAME, "namespace": namespace},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": names.OPERATOR_UID,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "resources": {"limits": {"cpu": "10m", "memory": "16Mi"}},
            "containers": [
                {"name": "probe", "image": "jr2", "securityContext": dict(pods.RESTRICTED)}
            ],
        },
    }
