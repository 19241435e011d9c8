"""How a thing that is more is called, by where it stands: never by its value.

Source: design §5.2 (Nothing more: what is more is named).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..compare import at as value_at
from ..fields import Path
from ..live import LiveObject

_ITEMS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "containers": ("container", ("name",)),
    "env": ("env", ("name",)),
    "ephemeralContainers": ("ephemeral container", ("name",)),
    "hostAliases": ("host alias", ("ip",)),
    "imagePullSecrets": ("image pull secret", ("name",)),
    "initContainers": ("init container", ("name",)),
    "matchConditions": ("match condition", ("name",)),
    "ports": ("port", ("containerPort", "port", "protocol")),
    "resourceClaims": ("resource claim", ("name",)),
    "volumeDevices": ("volume device", ("devicePath",)),
    "volumeMounts": ("volume mount", ("mountPath",)),
    "volumes": ("volume", ("name",)),
}
"""Lists whose items have a word of their own, and what an item is known by."""
_LISTS: Final[Mapping[str, str]] = {
    "egress": "egress rule",
    "ingress": "ingress rule",
    "policyTypes": "policy type",
    "rules": "rule",
    "subjects": "subject",
    "tolerations": "toleration",
}
_POD: Final = ("spec", "template", "spec")
_TEMPLATE: Final = ("spec", "template", "metadata")
_PROBES: Final = frozenset({"startupProbe", "readinessProbe", "livenessProbe"})
_HANDLERS: Final = frozenset({"exec", "grpc", "httpGet", "tcpSocket"})


def words(live: LiveObject, path: Path) -> str:
    """Return what stands at a path, as a person reads it.

    Args:
        live: the object.
        path: the path in it.
    """
    value = value_at(live, path)
    owner = "pod" if path[3:4] == ("securityContext",) else ""
    if path[0] in ("data", "binaryData"):
        return f'{live["kind"]} key "{path[-1]}"'
    if path[:3] == _TEMPLATE:
        return f'{str(path[3]).removesuffix("s")} "{path[-1]}" of the pod template'
    if path[:2] == ("spec", "selector") and len(path) > 2:
        return f'selector "{path[-1]}"'
    rest: list[str] = []
    here: Any = live
    said = ""
    for position, step in enumerate(path):
        here = value_at(here, (step,))
        if isinstance(step, int):
            listed = str(path[position - 1])
            name = _item(listed, here) or f"{listed}[{step}]"
            rest = []
            said = f"{name} of {said}" if said else name
        else:
            rest.append(step)
    rest = _without_prefix(path, rest)
    if not rest:
        return said
    own = _own_words(path, rest, value)
    if said or owner:
        return f"{own} of {said or owner}"
    return own


def _own_words(path: Path, rest: Sequence[str], value: Any) -> str:
    last = rest[-1]
    if path[:3] == _POD and last in ("serviceAccount", "serviceAccountName"):
        return f'service account "{value}"'
    if len(rest) > 1 and rest[-2] in _PROBES and last in _HANDLERS:
        return f"another kind of {rest[-2]}"
    if last in _LISTS and isinstance(value, list):
        return _LISTS[last] if len(value) == 1 else f"{len(value)} of {_LISTS[last]}"
    if last == "envFrom" and isinstance(value, list) and len(value) > 1:
        return f"{len(value)} of envFrom"
    return ".".join(rest)


def _item(listed: str, item: Any) -> str | None:
    word, keys = _ITEMS.get(listed, ("", ()))
    if not word or not isinstance(item, Mapping):
        return None
    values = [item[key] for key in keys if key in item]
    first, *more = values or [""]
    text = f'"{first}"' if isinstance(first, str) else str(first)
    return f"{word} {'/'.join([text, *map(str, more)])}"


def _without_prefix(path: Path, rest: list[str]) -> list[str]:
    """Leave out what leads to every field of the object."""
    if any(isinstance(step, int) for step in path):
        return rest
    prefix = 3 if path[:3] == _POD else 1 if path[:1] == ("spec",) else 0
    return rest[prefix:]
