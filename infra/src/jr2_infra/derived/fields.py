"""`managedFields` read: which manager owns which field of a live object.

FieldsV1 is a tree. `f:<name>` is a key of a mapping, `k:<keys>` an item of a list that merges by
keys, `v:<value>` an item of a list that is a set, `.` the mapping, list or item itself, and an
empty tree a value that is owned as a whole: a scalar, or what the API treats as atomic.

Source: design §5.2 (Derived state).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from jr2 import names

from .live import LiveObject

Fields = Mapping[str, Any]
Path = tuple[str | int, ...]
"""Where a value stands: names of mappings and positions in lists."""

AUTOSCALER: Final = "kube-controller-manager"
"""The manager under which a HorizontalPodAutoscaler writes replicas."""

_REPLACED: Final = "CustomResourceDefinition"

_KEY_DEFAULTS: Final[Mapping[str, Any]] = {"protocol": "TCP", "name": ""}
"""Keys of merged lists that the API fills in: a port's protocol, the name of a pull secret."""


def applied_fields(live: LiveObject) -> Fields | None:
    """Return the fields that jr2 applied; `None` when it never applied this object."""
    found = [entry.get("fieldsV1") or {} for entry in _entries(live) if _is_ours(entry, live)]
    return functools.reduce(_united, found) if found else None


def is_applied(live: LiveObject) -> bool:
    """Say whether an object may stand in the checkpoint: applied by jr2, and owned by no other."""
    return applied_fields(live) is not None and not live["metadata"].get("ownerReferences")


def is_replaced(live: LiveObject) -> bool:
    """Say whether the engine's plugin changes this object by replacing it as a whole."""
    return bool(live["kind"] == _REPLACED)


def owners(live: LiveObject, path: Path) -> tuple[str, ...]:
    """Return the managers beside jr2's own apply that own a value or anything in it.

    Args:
        live: the object.
        path: where the value stands in it.
    """
    found: dict[str, None] = {}
    for entry in _entries(live):
        if not _is_ours(entry, live) and _reaches(entry.get("fieldsV1") or {}, live, path):
            found[str(entry.get("manager") or "")] = None
    return tuple(name for name in found if name)


def is_ours(live: LiveObject, path: Path) -> bool:
    """Say whether jr2 applied a value or anything in it."""
    mine = applied_fields(live)
    return mine is not None and _reaches(mine, live, path)


def is_atomic(live: LiveObject, path: Path) -> bool:
    """Say whether some manager owns a value as a whole, so that its parts have no owner."""
    found = (_fields_at(entry.get("fieldsV1") or {}, live, path) for entry in _entries(live))
    return any(fields is not None and is_whole(fields) for fields in found)


def live_path(live: LiveObject, obj: Mapping[str, Any], path: Path) -> Path:
    """Return where a value of a wanted or derived object stands in the live one.

    Another manager's items may stand before ours, so a position is found again by the keys of its
    item. Where an item is not there, the path ends at its list.

    Args:
        live: the live object.
        obj: the object that `path` leads through.
        path: where the value stands in `obj`.
    """
    result: list[str | int] = []
    here: Any = obj
    there: Any = live
    fields: Fields = applied_fields(live) or {}
    for step in path:
        if isinstance(step, str):
            here = here.get(step) if isinstance(here, Mapping) else None
            there = there.get(step) if isinstance(there, Mapping) else None
            fields = fields.get(f"f:{step}") or {}
            result.append(step)
            continue
        item = here[step] if isinstance(here, list) and step < len(here) else None
        items = there if isinstance(there, list) else []
        keys = merge_keys(fields) or ("name",)
        if not isinstance(item, Mapping) or not any(key in item for key in keys):
            break
        key = key_values(item, keys)
        found = next((at for at, other in enumerate(items) if has_key(other, key)), None)
        if found is None:
            break
        here, there = item, items[found]
        fields = next((inner for at, inner in items_in(fields, items) if at == found), {})
        result.append(found)
    return tuple(result)


def autoscaled(live: LiveObject) -> bool:
    """Say whether an autoscaler decides the replicas of a workload, and jr2 does not."""
    path = ("spec", "replicas")
    if applied_fields(live) is None or is_ours(live, path):
        return False
    return any(
        entry.get("manager") == AUTOSCALER
        and entry.get("subresource") == "scale"
        and _reaches(entry.get("fieldsV1") or {}, live, path)
        for entry in _entries(live)
    )


def names_in(fields: Fields) -> Iterator[tuple[str, Fields]]:
    """Give the keys of a mapping that the fields name, each with what is owned in it."""
    for step, inner in fields.items():
        if step.startswith("f:"):
            yield step[2:], inner


def items_in(fields: Fields, items: Sequence[Any]) -> Iterator[tuple[int, Fields]]:
    """Give the items of a list that the fields name, in the list's order.

    Args:
        fields: what is owned in the list.
        items: the list.
    """
    values = [json.loads(step[2:]) for step in fields if step.startswith("v:")]
    keyed = [
        (json.loads(step[2:]), inner) for step, inner in fields.items() if step.startswith("k:")
    ]
    for index, item in enumerate(items):
        for key, inner in keyed:
            if has_key(item, key):
                yield index, inner
                break
        else:
            if any(same_json(item, value) for value in values):
                yield index, {}


def has_key(item: object, key: Mapping[str, Any]) -> bool:
    """Say whether an item of a merged list has the keys that FieldsV1 gives."""
    return isinstance(item, Mapping) and all(
        same_json(item.get(name, _KEY_DEFAULTS.get(name)), value) for name, value in key.items()
    )


def merge_keys(fields: Fields) -> tuple[str, ...]:
    """Return the names of the keys by which a list merges; none for other values."""
    for step in fields:
        if step.startswith("k:"):
            return tuple(json.loads(step[2:]))
    return ()


def key_values(item: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Return the values of an item's keys, with those that the API fills in."""
    return {name: item.get(name, _KEY_DEFAULTS.get(name)) for name in keys}


def is_whole(fields: Fields) -> bool:
    """Say whether a value is owned as a whole: a scalar or an atomic mapping or list."""
    return not fields


def same_json(first: object, second: object) -> bool:
    """Say whether two JSON values are equal; `true` is not `1`, while `1.0` is."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(
            same_json(value, second[key]) for key, value in first.items()
        )
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(same_json, first, second))
    return first == second


def _entries(live: LiveObject) -> Sequence[Mapping[str, Any]]:
    return live["metadata"].get("managedFields") or ()


def _is_ours(entry: Mapping[str, Any], live: LiveObject) -> bool:
    if entry.get("manager") != names.FIELD_MANAGER or entry.get("subresource"):
        return False
    # The engine's plugin changes a CRD by replacing it, and not by applying it as it does the rest.
    return entry.get("operation") == "Apply" or is_replaced(live)


def _united(first: Fields, second: Fields) -> Fields:
    """Return what either of two managers owns; a value that one owns as a whole is owned so."""
    if not first or not second:
        return {}
    shared = {step: _united(first[step], second[step]) for step in first if step in second}
    return {**first, **second, **shared}


def _reaches(fields: Fields, value: object, path: Path) -> bool:
    """Say whether the fields own a value at a path, something in it, or an atomic value over it."""
    return _fields_at(fields, value, path) is not None


def _fields_at(fields: Fields, value: object, path: Path) -> Fields | None:
    """Return what is owned at a path; nothing in it means that the value is owned as a whole."""
    for position, step in enumerate(path):
        if is_whole(fields):
            return fields if position else None
        inner: Fields | None = None
        if isinstance(step, str) and isinstance(value, Mapping):
            inner, value = fields.get(f"f:{step}"), value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            inner = dict(items_in(fields, value)).get(step)
            value = value[step]
        if inner is None:
            return None
        fields = inner
    return fields
