"""Nothing more: what another manager added to an object where jr2 must be the only one.

Server-side apply leaves in place what others put beside our fields: a second container, a further
rule, one more key of a Secret. In the places below everything that is not wanted is named and taken
away, unless the server put it there by default.

Source: design §5.2 (Nothing more).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from . import fields as managed
from .fields import Path
from .live import LiveObject, ObjectKey, key_of

RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"
"""What `kubectl rollout restart` writes on a pod template; it is never taken away."""

_Found = tuple[str, Path, Mapping[str, Any] | None]

_WORKLOADS: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet"})
_HOST: Final = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace")
_NAMED: Final[Mapping[str, str]] = {
    "containers": "container",
    "initContainers": "init container",
    "volumes": "volume",
}
_OF_CONTAINER: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "env": ("env", ("name",)),
    "envFrom": ("envFrom", ()),
    "volumeMounts": ("volume mount", ("mountPath",)),
    "volumeDevices": ("volume device", ("devicePath",)),
    "ports": ("port", ("containerPort", "protocol")),
}
_FIELDS_OF_CONTAINER: Final = ("command", "args", "lifecycle")
_OF_POD: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "hostAliases": ("host alias", ("ip",)),
    "imagePullSecrets": ("image pull secret", ("name",)),
    "resourceClaims": ("resource claim", ("name",)),
}
"""Lists of a pod of which an API server fills in nothing in a template."""
_FIELDS_OF_POD: Final[Mapping[str, Any]] = {
    "dnsConfig": None,
    "dnsPolicy": "ClusterFirst",
    "nodeName": None,
    "priorityClassName": None,
    "runtimeClassName": None,
    "schedulerName": "default-scheduler",
}
"""Fields that decide where a pod runs and whom it asks, each with the server's default."""
_FIELDS_OF_PORT: Final = ("hostPort", "hostIP")
_USUAL_TAINTS: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
"""Taints that the API server lets every pod tolerate for a while."""
_PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")
_HANDLERS: Final = frozenset({"exec", "grpc", "httpGet", "tcpSocket"})
_SECURITY_DEFAULTS: Final[Mapping[str, Any]] = {"procMount": "Default"}
_SERVICE_FIELDS: Final = ("externalIPs", "externalName", "loadBalancerIP")


@dataclass(frozen=True, slots=True, kw_only=True)
class More:
    """One thing that is more than wanted.

    Args:
        key: the object.
        what: what it is, such as `container "evil"`; never a value.
        by: the manager that put it there; empty when the API does not say.
        path: where it stands in the live object.
        instead: what is put there; `None` when it is removed. Of some values the API takes one kind
            or another and never both, so that a wanted one cannot be applied beside a foreign one.
    """

    key: ObjectKey
    what: str
    by: str
    path: Path
    instead: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return f'{self.what}, put there by "{self.by}"' if self.by else self.what


def nothing_more(wanted: Mapping[str, Any], live: LiveObject) -> list[More]:
    """Return what a live object has more than wanted, in the order of the object.

    Args:
        wanted: the wanted object.
        live: the same object as the API gave it, with `managedFields`.
    """
    key = key_of(live)
    found: list[More] = []
    for what, path, instead in _found(wanted, live):
        by = managed.owners(live, path)
        # What jr2 alone applied and no longer wants goes with the next apply.
        if by or not managed.is_ours(live, path):
            by_all = ", ".join(by)
            found.append(More(key=key, what=what, by=by_all, path=path, instead=instead))
    return found


def healing(live: LiveObject, more: Sequence[More]) -> list[dict[str, Any]]:
    """Return the JSON patch that takes away what is more, if the object is still the one seen.

    Args:
        live: the object as it was read; the patch holds for its `resourceVersion` alone.
        more: what `nothing_more` said of it.
    """
    version = live["metadata"]["resourceVersion"]
    # The last item of a list goes first, so that no removal moves the place of the next.
    items = sorted({_pointer(item.path): item for item in more}.values(), key=_order, reverse=True)
    return [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        *(
            {"op": "remove", "path": _pointer(item.path)}
            if item.instead is None
            else {"op": "replace", "path": _pointer(item.path), "value": dict(item.instead)}
            for item in items
        ),
    ]


def _found(wanted: Mapping[str, Any], live: LiveObject) -> Iterator[_Found]:
    kind = live["kind"]
    if kind in _WORKLOADS:
        yield from _strategy(wanted, live)
        at: Path = ("spec", "template", "spec")
        yield from _pod(_at(wanted, at), _at(live, at), at)
    elif kind == "ServiceAccount":
        yield from _items(wanted, live, ("imagePullSecrets",), "image pull secret", ("name",))
    elif kind in {"Secret", "ConfigMap"}:
        for part in ("data", "binaryData"):
            yield from _keys(wanted, live, (part,), f"{kind} key")
        if live.get("immutable") and not wanted.get("immutable"):
            yield "immutable", ("immutable",), None
    elif kind in {"Role", "ClusterRole"}:
        yield from _items(wanted, live, ("rules",), "rule", ())
        if live.get("aggregationRule") and not wanted.get("aggregationRule"):
            yield "aggregationRule", ("aggregationRule",), None
    elif kind in {"RoleBinding", "ClusterRoleBinding"}:
        yield from _items(wanted, live, ("subjects",), "subject", ())
    elif kind == "NetworkPolicy":
        for direction in ("ingress", "egress"):
            yield from _items(wanted, live, ("spec", direction), f"{direction} rule", ())
        yield from _items(wanted, live, ("spec", "policyTypes"), "policy type", (), default=1)
    elif kind == "Service":
        yield from _keys(wanted, live, ("spec", "selector"), "selector")
        yield from _items(wanted, live, ("spec", "ports"), "port", ("port", "protocol"))
        for name in _SERVICE_FIELDS:
            if _at(live, ("spec", name)) and not _at(wanted, ("spec", name)):
                yield name, ("spec", name), None


def _pod(wanted: Any, live: Any, at: Path) -> Iterator[_Found]:
    for name in _HOST:
        if _at(live, (name,)) and not _at(wanted, (name,)):
            yield name, (*at, name), None
    if _at(live, ("hostUsers",)) is not None and _at(wanted, ("hostUsers",)) is None:
        yield "hostUsers", (*at, "hostUsers"), None
    for name, default in _FIELDS_OF_POD.items():
        value = _at(live, (name,))
        if value not in (None, "", default) and _at(wanted, (name,)) is None:
            yield name, (*at, name), None
    for listed, (word, keys) in _OF_POD.items():
        for what, path, instead in _items(wanted, live, (listed,), word, keys):
            yield what, (*at, *path), instead
    yield from _tolerations(wanted, live, at)
    yield from _account(wanted, live, at)
    yield from _security(wanted, live, at, "pod")
    for listed, word in _NAMED.items():
        ours = _by_key(_at(wanted, (listed,)), ("name",))
        for index, item in enumerate(_at(live, (listed,)) or ()):
            here = (*at, listed, index)
            partner = ours.get((item.get("name"),))
            if partner is None:
                yield f'{word} "{item.get("name")}"', here, None
            elif listed == "volumes":
                yield from _source(partner, item, here)
            else:
                yield from _container(partner, item, here, f'{word} "{item["name"]}"')


def _account(wanted: Any, live: Any, at: Path) -> Iterator[_Found]:
    """`serviceAccount` is the old name of `serviceAccountName`: the server keeps both equal."""
    asked = _at(wanted, ("serviceAccountName",)) or _at(wanted, ("serviceAccount",))
    for name in ("serviceAccountName", "serviceAccount"):
        account = _at(live, (name,))
        if account and asked is None and account != "default":
            yield f'service account "{account}"', (*at, name), None


def _tolerations(wanted: Any, live: Any, at: Path) -> Iterator[_Found]:
    """Tolerations that nobody wants; a list of the usual ones is the server's."""
    found = [item for item in _at(live, ("tolerations",)) or () if not _is_usual(item)]
    if found and not _at(wanted, ("tolerations",)):
        what = "toleration" if len(found) == 1 else f"{len(found)} of toleration"
        yield what, (*at, "tolerations"), None


def _is_usual(toleration: Mapping[str, Any]) -> bool:
    return (
        toleration.get("key") in _USUAL_TAINTS
        and toleration.get("effect") == "NoExecute"
        and toleration.get("operator") == "Exists"
        and toleration.get("tolerationSeconds") is not None
    )


def _container(wanted: Any, live: Any, at: Path, where: str) -> Iterator[_Found]:
    for listed, (word, keys) in _OF_CONTAINER.items():
        for what, path, instead in _items(wanted, live, (listed,), word, keys):
            yield f"{what} of {where}", (*at, *path), instead
    for name in (*_FIELDS_OF_CONTAINER, *_PROBES):
        if _at(live, (name,)) and not _at(wanted, (name,)):
            yield f"{name} of {where}", (*at, name), None
    yield from _values(wanted, live, at, where)
    yield from _ports(wanted, live, at, where)
    for name in _PROBES:
        ours, theirs = _at(wanted, (name,)), _at(live, (name,))
        if ours and theirs and _HANDLERS & (theirs.keys() - ours.keys()):
            yield f"another kind of {name} of {where}", (*at, name), ours
    yield from _security(wanted, live, at, where)


def _strategy(wanted: Any, live: Any) -> Iterator[_Found]:
    """What belongs to a rolling update stands in the way of any other kind of update."""
    for name in ("strategy", "updateStrategy"):
        ours, theirs = _at(wanted, ("spec", name)), _at(live, ("spec", name))
        if ours and theirs and theirs.get("rollingUpdate") and ours.get("type") != "RollingUpdate":
            yield f"{name}.rollingUpdate", ("spec", name), ours


def _values(wanted: Any, live: Any, at: Path, where: str) -> Iterator[_Found]:
    """A variable has a value or a source of it; the other one is more."""
    ours = _by_key(_at(wanted, ("env",)), ("name",))
    for index, item in enumerate(_at(live, ("env",)) or ()):
        partner = ours.get((item.get("name"),), item)
        for name in ("value", "valueFrom"):
            if name in item and name not in partner:
                what = f'{name} of env "{item["name"]}" of {where}'
                yield what, (*at, "env", index, name), None


def _ports(wanted: Any, live: Any, at: Path, where: str) -> Iterator[_Found]:
    """What opens a wanted port on the node."""
    keys = _OF_CONTAINER["ports"][1]
    ours = _by_key(_at(wanted, ("ports",)), keys)
    for index, item in enumerate(_at(live, ("ports",)) or ()):
        key = tuple(managed.key_values(item, keys).values())
        for name in _FIELDS_OF_PORT:
            if item.get(name) and key in ours and name not in ours[key]:
                yield f"{name} of port {_shown(key)} of {where}", (*at, "ports", index, name), None


def _security(wanted: Any, live: Any, at: Path, where: str) -> Iterator[_Found]:
    """Everything in a `securityContext` that is not wanted, down to its leaves."""
    top: Path = ("securityContext",)
    for path in _leaves(_at(wanted, top) or {}, _at(live, top) or {}):
        default = _SECURITY_DEFAULTS.get(str(path[0]))
        if default is None or _at(live, (*top, *path)) != default:
            words = ".".join(str(step) for step in path)
            yield f"securityContext.{words} of {where}", (*at, *top, *path), None


def _source(wanted: Any, live: Any, at: Path) -> Iterator[_Found]:
    """A volume has one source; another one is more, and the API would take no second beside it."""
    for name in live:
        if name not in wanted:
            yield f'{name} of volume "{live["name"]}"', at, wanted


def _leaves(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> Iterator[Path]:
    for name, value in live.items():
        if name not in wanted:
            yield (name,)
        elif isinstance(value, Mapping) and isinstance(wanted[name], Mapping):
            for inner in _leaves(wanted[name], value):
                yield (name, *inner)


def _keys(
    wanted: Mapping[str, Any], live: Mapping[str, Any], at: Path, word: str
) -> Iterator[_Found]:
    ours = _at(wanted, at) or {}
    for name in _at(live, at) or {}:
        if name not in ours:
            yield f'{word} "{name}"', (*at, name), None


def _items(
    wanted: Any,
    live: Any,
    at: Path,
    word: str,
    keys: Sequence[str],
    *,
    default: int = 0,
) -> Iterator[_Found]:
    """Items of a list that are not wanted.

    A list that merges by keys is compared by them. An atomic list is compared by its length, and
    only when jr2 wants none of it: a changed one is no longer owned by jr2, so the proof names it.
    """
    items = _at(live, at) or ()
    if keys:
        ours = _by_key(_at(wanted, at), keys)
        for index, item in enumerate(items):
            key = tuple(managed.key_values(item, keys).values())
            if key not in ours:
                yield f"{word} {_shown(key)}", (*at, index), None
        return
    if not _at(wanted, at) and len(items) > default:
        yield word if len(items) == 1 else f"{len(items)} of {word}", at, None


def _by_key(items: Any, keys: Sequence[str]) -> dict[tuple[Any, ...], Mapping[str, Any]]:
    return {tuple(managed.key_values(item, keys).values()): item for item in items or ()}


def _shown(key: tuple[Any, ...]) -> str:
    first = key[0]
    text = f'"{first}"' if isinstance(first, str) else str(first)
    return "/".join([text, *(str(part) for part in key[1:])])


def _at(obj: Any, path: Path) -> Any:
    for step in path:
        obj = obj.get(step) if isinstance(obj, Mapping) else None
    return obj


def _pointer(path: Path) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _order(item: More) -> tuple[tuple[int, str], ...]:
    return tuple((step, "") if isinstance(step, int) else (-1, step) for step in item.path)
