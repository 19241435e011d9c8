"""The rights that each use of an Instance needs, place by place; the kinds come from the closed list.

Kubernetes lets nobody grant more than they hold, so who makes a Role of a service must hold its
rules. Thus a converge needs what the Orchestrator and the Repo cache may do, and one that keeps the
operator what the operator may do.

Source: design §6.3, spec/converge.md §5 and §6.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from jr2 import names, rbac
from jr2.rbac import Rule

from .. import closed_list
from ..closed_list import Kind

Place = Literal["cluster", "instance", "system"]

_READ: Final = ("get", "list")
_WRITE: Final = ("create", "patch", "delete")
_WORKLOADS: Final = ("Deployment", "DaemonSet", "StatefulSet")
_LEASES: Final = Rule(
    groups=("coordination.k8s.io",), resources=("leases",), verbs=("get", "create", "update")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Rules that hold in one place.

    Args:
        place: the whole cluster, the namespace of the Instance, or `jr2-system`.
        rules: what may be done there.
    """

    place: Place
    rules: tuple[Rule, ...]


def converge(namespace: str, *, shared: bool, makes_namespace: bool = False) -> tuple[Grant, ...]:
    """Return what `jr2 up` needs.

    Args:
        namespace: of the Instance.
        shared: it keeps what the Instances of a cluster share: operator, CRDs, PriorityClasses.
        makes_namespace: the namespace is not there yet.
    """
    own = [_read_cluster(namespace), _instance(), _read_system()]
    named = (names.SYSTEM_NAMESPACE, namespace) if shared else (namespace,)
    cluster = [_core("namespaces", "patch", named=named)]
    if shared or makes_namespace:
        # A name cannot limit what is created.
        cluster.append(_core("namespaces", "create"))
    own.append(Grant(place="cluster", rules=tuple(cluster)))
    if shared:
        own += [_shared_of_cluster(), _shared_of_system()]
    return tuple(own)


def preview(namespace: str) -> tuple[Grant, ...]:
    """Return what a preview needs: it reads, and writes nothing."""
    return (_read_cluster(namespace), _read_instance(), _read_system())


def use(namespace: str) -> tuple[Grant, ...]:
    """Return what `jr2 run`, `runs`, `status`, `logs` and `send` need: token and forward.

    Args:
        namespace: of the Instance; the Role lies in it.
    """
    return (
        Grant(
            place="instance",
            rules=(
                _core("secrets", "get", named=(names.INSTANCE_SECRET,)),
                _core("services", "get", named=(names.ORCHESTRATOR,)),
                _core("pods", "get", "list"),
                _core("pods/portforward", "create"),
            ),
        ),
    )


def remove(namespace: str) -> tuple[Grant, ...]:
    """Return what `jr2 down` needs beside the rights of a converge."""
    kinds = (closed_list.SANDBOX, closed_list.REPO)
    return (
        Grant(place="cluster", rules=(_core("namespaces", "delete", named=(namespace,)),)),
        Grant(place="instance", rules=tuple(_of(kind, "list", "delete") for kind in kinds)),
    )


def _read_cluster(namespace: str) -> Grant:
    """Who owns the namespace, where pods can run, and what the Instances share."""
    shared: dict[Kind, list[str]] = {}
    for kind, name in closed_list.CLUSTER_OBJECTS:
        shared.setdefault(kind, []).append(name)
    spaces = ("kube-system", *shared.pop(closed_list.NAMESPACE), namespace)
    return Grant(
        place="cluster",
        rules=(
            _core("namespaces", "get", named=spaces),
            _core("nodes", "get", "list"),
            *(_of(kind, "get", named=tuple(found)) for kind, found in shared.items()),
        ),
    )


def _read_instance() -> Grant:
    return Grant(
        place="instance",
        rules=(
            *(_of(kind, *_READ) for kind in closed_list.instance_kinds()),
            _core("pods", *_READ),
            _core("services/proxy", "get"),
        ),
    )


def _instance() -> Grant:
    """Everything that the Converge makes in a namespace, and what it looks at until it stands."""
    return Grant(
        place="instance",
        rules=(
            *(
                _of(kind, *_READ, *(("watch",) if kind.kind in _WORKLOADS else ()), *_WRITE)
                for kind in closed_list.instance_kinds()
            ),
            # The probe of pod-level resources is a dry run, which needs the right of a real one.
            _core("pods", *_READ, "create"),
            _core("pods/log", "get"),
            _core("pods/portforward", "create"),
            _core("services/proxy", "get"),
            *_evidence(),
            _LEASES,
            *_granted((*rbac.ORCHESTRATOR_RULES, *rbac.REPO_CACHE_RULES)),
        ),
    )


def _read_system() -> Grant:
    return Grant(
        place="system",
        rules=(
            *(_of(kind, *_READ) for kind in closed_list.system_kinds()),
            _core("pods", *_READ),
        ),
    )


def _shared_of_cluster() -> Grant:
    rules: list[Rule] = []
    for kind in dict.fromkeys(kind for kind, _ in closed_list.CLUSTER_OBJECTS):
        named = tuple(name for other, name in closed_list.CLUSTER_OBJECTS if other == kind)
        if kind == closed_list.NAMESPACE:
            continue
        # The engine replaces a CRD where it applies the rest; what cannot be changed is made anew.
        also = ("update",) if kind == closed_list.CRD else ("delete",)
        rules += [_of(kind, "create"), _of(kind, "patch", *also, named=named)]
    return Grant(place="cluster", rules=(*rules, *_granted(rbac.OPERATOR_RULES)))


def _shared_of_system() -> Grant:
    return Grant(
        place="system",
        rules=(
            *(
                _of(kind, *(("watch",) if kind.kind in _WORKLOADS else ()), *_WRITE)
                for kind in closed_list.system_kinds()
            ),
            _core("pods/log", "get"),
            *_evidence(),
            _LEASES,
        ),
    )


def _evidence() -> tuple[Rule, ...]:
    """What tells how a rollout goes."""
    return (
        _core("events", "list"),
        Rule(groups=("apps",), resources=("replicasets", "controllerrevisions"), verbs=("list",)),
    )


def _granted(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules of services, which whoever grants them must hold."""
    return tuple(rules)


def _core(resource: str, *verbs: str, named: tuple[str, ...] = ()) -> Rule:
    return Rule(groups=("",), resources=(resource,), verbs=verbs, resource_names=named)


def _of(kind: Kind, *verbs: str, named: tuple[str, ...] = ()) -> Rule:
    group = kind.api_version.rpartition("/")[0]
    return Rule(groups=(group,), resources=(kind.plural,), verbs=verbs, resource_names=named)
