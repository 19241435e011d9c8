"""What holds a namespace that is being deleted: the objects in it, and who holds each of them.

The API server says in conditions which resources remain, and which API groups it cannot ask. Each
is looked up, so that a person reads names and the command that shows them. Nothing is ever edited:
a finalizer belongs to whoever put it there.

What cannot be read is left out: the conditions themselves are said in any case.

Source: field case 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx2

from .. import rules
from ..api import Api, ApiError

_REMAINS: Final = re.compile(r"([a-z0-9]+)\.([a-z0-9.-]*) has \d+ resource instances")
_DEAD: Final = re.compile(r"([a-z0-9.-]+)/(v\w+): ")
_MOST: Final = 5


def what_holds(api: Api, namespace: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return a line for each object that holds a namespace, and the commands that show them.

    Args:
        api: the API server.
        namespace: the Namespace, with its conditions; nothing holds one that is not deleted.
    """
    if namespace is None or not rules.is_terminating(namespace):
        return ()
    conditions = {
        str(condition.get("type")): str(condition.get("message", ""))
        for condition in (namespace.get("status") or {}).get("conditions") or []
        if condition.get("status") == "True"
    }
    name = str(namespace["metadata"]["name"])
    lines: list[str] = []
    for plural, group in _REMAINS.findall(conditions.get("NamespaceContentRemaining", "")):
        try:
            lines += _objects(api, name, plural, group)
        except (ApiError, httpx2.HTTPError):
            continue
        lines.append(f"see: kubectl -n {name} get {f'{plural}.{group}'.rstrip('.')} -o yaml")
    failed = conditions.get("NamespaceDeletionDiscoveryFailure", "")
    for group, version in dict.fromkeys(_DEAD.findall(failed)):
        lines.append(f"the API group {group}/{version} does not answer")
        lines.append(f"see: kubectl get apiservice {version}.{group}")
    return tuple(lines)


def _objects(api: Api, namespace: str, plural: str, group: str) -> Iterator[str]:
    base = "/api/v1"
    if group:
        found = api.get(f"/apis/{group}") or {}
        version = (found.get("preferredVersion") or {}).get("groupVersion")
        if not version:
            return
        base = f"/apis/{version}"
    page = api.get(f"{base}/namespaces/{namespace}/{plural}") or {}
    kind = str(page.get("kind", plural)).removesuffix("List")
    items = page.get("items") or []
    for item in items[:_MOST]:
        yield held_by(kind, item)
    if len(items) > _MOST:
        yield f"and {len(items) - _MOST} more"


def held_by(kind: str, obj: Mapping[str, Any]) -> str:
    """Say an object and the finalizers that hold it."""
    metadata = obj["metadata"]
    finalizers = ", ".join(metadata.get("finalizers") or [])
    return f"{kind} {metadata['name']} is held by {finalizers or 'no finalizer'}"
