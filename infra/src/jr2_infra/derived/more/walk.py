"""Walk a live object beside the wanted one, and find what only the live one has.

Mappings are compared by their names and merged lists by the keys of their items. A list that the
API takes as a whole is left to the proof when something in it is wanted: whoever changes it owns
it, and jr2 does not any more. An item of which jr2 wants a part is walked into.

Source: design §5.2 (Nothing more).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .. import fields as managed
from ..fields import Path
from ..live import LiveObject
from .server_defaults import KINDS, Node, default_at

RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"
"""What `kubectl rollout restart` writes on a pod template; it is never taken away."""

MERGE_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "matchConditions": ("name",),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "variables": ("name",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
"""Lists that merge by keys, by their names; `ports` has two forms."""
_MAPS: Final = frozenset({"annotations", "binaryData", "data", "labels"})
"""Maps whose names people choose."""
_SERVICE_PORT: Final = ("port", "protocol")
_USUAL_TAINTS: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
"""Taints that the API server lets every pod tolerate for a while."""
_HANDLERS: Final = frozenset({"exec", "grpc", "httpGet", "tcpSocket"})
_PROBES: Final = frozenset({"startupProbe", "readinessProbe", "livenessProbe"})
_STRATEGIES: Final = frozenset({"strategy", "updateStrategy"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Surplus:
    """One thing that only the live object has.

    Args:
        path: where it stands.
        at: where it is taken away: there, or around it.
        instead: what is put there.
    """

    path: Path
    at: Path
    instead: Mapping[str, Any] | None = None


def surplus(wanted: Mapping[str, Any], live: LiveObject) -> Iterator[Surplus]:
    """Give what only the live object has, in its order.

    Args:
        wanted: the wanted object.
        live: the same object as the API gave it, with `managedFields`.
    """
    compared = KINDS.get(live["kind"], {})
    for name, value in live.items():
        if name in compared:
            for found in _named(wanted, name, value, (), live):
                if _is_foreign(live, found.path):
                    yield found


def _named(
    wanted: Mapping[str, Any], name: str, value: Any, at: Path, live: LiveObject
) -> Iterator[Surplus]:
    """Compare what stands under one name of a mapping."""
    here = (*at, name)
    if name not in wanted:
        yield from _unwanted(wanted, name, value, here, live)
    elif isinstance(value, Mapping) and isinstance(wanted[name], Mapping):
        yield from _mapping(wanted[name], value, here, live)
    elif isinstance(value, list) and isinstance(wanted[name], list):
        yield from _list(wanted[name], value, here, live)


def _mapping(
    wanted: Mapping[str, Any], found: Mapping[str, Any], at: Path, live: LiveObject
) -> Iterator[Surplus]:
    around = _in_the_way(wanted, found, at)
    if around:
        yield from around
        return
    for name, value in found.items():
        yield from _named(wanted, name, value, at, live)


def _in_the_way(wanted: Mapping[str, Any], found: Mapping[str, Any], at: Path) -> list[Surplus]:
    """Name what stands in the way of a wanted value, which the API would not take beside it.

    A volume has one source, a probe one handler, a variable one origin, an update one strategy, and
    a Service that is a name elsewhere has no address of its own.
    """
    others: Iterable[str] = found.keys() - wanted.keys()
    if at[-1] in _PROBES:
        others = _HANDLERS & set(others) if _HANDLERS & wanted.keys() else ()
    elif at[-1] in _STRATEGIES:
        others = {"rollingUpdate"} & set(others) if wanted.get("type") != "RollingUpdate" else ()
    elif at == ("spec",):
        others = [name for name in ("externalName",) if name in others and found[name]]
    elif at[-1] != "valueFrom" and at[-2:-1] != ("volumes",):
        others = ()
    if not wanted:
        others = ()
    return [Surplus(path=(*at, name), at=at, instead=wanted) for name in sorted(others)]


def _unwanted(
    wanted: Mapping[str, Any], name: str, value: Any, here: Path, live: LiveObject
) -> Iterator[Surplus]:
    """Give what is more in a value that nobody wants: each entry of a map, or all of it."""
    if name == "serviceAccount" and value == wanted.get("serviceAccountName"):
        # The old name of the other field: the server keeps both equal.
        return
    if name == RESTARTED_AT and here[-2] == "annotations":
        return
    if name == "tolerations" and all(map(_is_usual, value or ())):
        return
    if name in _MAPS and isinstance(value, Mapping):
        yield from _mapping({}, value, here, live)
    elif isinstance(value, list) and _keys(here, value):
        yield from _list((), value, here, live)
    elif _says_more(value, default_at(live["kind"], here), here, live):
        yield Surplus(path=here, at=here)


def _says_more(value: Any, default: Node, at: Path, live: LiveObject) -> bool:
    """Say whether a value is another one than the server gives by itself."""
    if isinstance(default, tuple):
        same = any(managed.same_json(value, item) for item in default)
        return not same and (bool(default) or not _is_empty(value))
    if isinstance(default, Mapping) and isinstance(value, Mapping):
        return any(
            _says_more(inner, default_at(live["kind"], (*at, name)), (*at, name), live)
            for name, inner in value.items()
        )
    # What a server of another version gives is not known here; what somebody wrote is.
    return not _is_empty(value) and bool(managed.owners(live, at))


def _is_empty(value: Any) -> bool:
    """Say whether a value says nothing; `false` and 0 say something, such as to run as root."""
    return value is None or value in ("", [], {})


def _list(
    wanted: Sequence[Any], found: Sequence[Any], at: Path, live: LiveObject
) -> Iterator[Surplus]:
    keys = _keys(at, found)
    if not keys:
        if not wanted and found:
            yield Surplus(path=at, at=at)
        return
    ours = {_key(item, keys): item for item in wanted}
    theirs = {_key(item, keys) for item in found}
    lost = [item for key, item in ours.items() if key not in theirs]
    for index, item in enumerate(found):
        here = (*at, index)
        partner = ours.get(_key(item, keys))
        if partner is None:
            instead = _in_its_place(item, lost) if keys == _SERVICE_PORT else None
            yield Surplus(path=here, at=here, instead=instead)
        elif isinstance(item, Mapping):
            yield from _mapping(partner, item, here, live)


def _in_its_place(foreign: Any, lost: list[Any]) -> Any:
    """Take the wanted port that goes where a foreign one stands, and `None` when none is lost.

    A Service has a port at all times and no two of one name, so a port that somebody gave another
    number can neither go alone nor stay beside the wanted one.
    """
    named = [item for item in lost if item.get("name") == foreign.get("name")]
    for item in named or lost:
        lost.remove(item)
        return item
    return None


def _is_foreign(live: LiveObject, path: Path) -> bool:
    """Say whether what is not wanted is another's; what jr2 alone applied goes with the next apply."""
    return bool(managed.owners(live, path)) or not managed.is_ours(live, path)


def _keys(at: Path, found: Sequence[Any]) -> tuple[str, ...]:
    if at[-1] == "ports":
        container = any(isinstance(item, Mapping) and "containerPort" in item for item in found)
        return ("containerPort", "protocol") if container else _SERVICE_PORT
    return MERGE_KEYS.get(str(at[-1]), ())


def _key(item: Any, keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(managed.key_values(item, keys).values())


def _is_usual(toleration: Mapping[str, Any]) -> bool:
    return (
        toleration.get("key") in _USUAL_TAINTS
        and toleration.get("effect") == "NoExecute"
        and toleration.get("operator") == "Exists"
        and toleration.get("tolerationSeconds") is not None
    )
