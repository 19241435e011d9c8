"""Fields that the API server never changes: what an existing object must have, or go.

An object that holds no data is deleted and made again; a claim holds the runs of the Instance, so
it is never deleted, and what cannot be changed about it is refused.

Source: design §5.3 (Immutable fields).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jr2 import quantity
from jr2.errors import Refusal

from .derived.live import LiveObject

_FIELDS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "Deployment": (("spec", "selector"),),
    "DaemonSet": (("spec", "selector"),),
    "StatefulSet": (
        ("spec", "selector"),
        ("spec", "serviceName"),
        ("spec", "podManagementPolicy"),
        ("spec", "volumeClaimTemplates"),
    ),
    "RoleBinding": (("roleRef",),),
    "ClusterRoleBinding": (("roleRef",),),
    "PriorityClass": (("value",), ("preemptionPolicy",)),
    "Secret": (("type",),),
}


def reason_to_recreate(wanted: Mapping[str, Any], live: LiveObject) -> str | None:
    """Return which immutable field differs on an object that may be deleted and made again."""
    for path in _FIELDS.get(wanted["kind"], ()):
        if _at(wanted, path) != _at(live, path):
            return ".".join(path)
    if wanted["kind"] == "Service":
        headless = [_at(obj, ("spec", "clusterIP")) == "None" for obj in (wanted, live)]
        if headless[0] != headless[1]:
            return "spec.clusterIP"
    if wanted["kind"] in {"Secret", "ConfigMap"} and live.get("immutable"):
        return "immutable"
    return None


def claim_size(wanted: str, live: LiveObject | None) -> str:
    """Return the size that a claim asks for: a claim that was made larger keeps its size.

    Args:
        wanted: what a new claim asks for.
        live: the claim that exists.
    """
    held = _at(live or {}, ("spec", "resources", "requests", "storage"))
    if isinstance(held, str) and quantity.parse(held) > quantity.parse(wanted):
        return held
    return wanted


def check_claim(wanted: Mapping[str, Any], live: LiveObject | None, *, holds: str) -> None:
    """Refuse a claim whose fixed fields are not the wanted ones.

    The wanted claim names no storage class (`components.storage`), so the class that the cluster
    gave is never another one than wanted.

    Args:
        wanted: the claim as jr2 wants it.
        live: the claim as it is.
        holds: what is lost with it.

    Raises:
        Refusal: its access modes differ; it holds what nobody can make again, so it is not deleted.
    """
    if live is None:
        return
    modes, held = _at(wanted, ("spec", "accessModes")), _at(live, ("spec", "accessModes"))
    if modes != held:
        metadata = live["metadata"]
        raise Refusal(
            f'PersistentVolumeClaim "{metadata["name"]}" in namespace "{metadata["namespace"]}" '
            f"has the access modes {', '.join(held or [])}, and jr2 needs {', '.join(modes)}; they "
            f"cannot be changed, and the claim holds {holds} — move its data, "
            "delete the claim, and run `jr2 up` again. Nothing was applied."
        )


def _at(obj: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    found: Any = obj
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found
