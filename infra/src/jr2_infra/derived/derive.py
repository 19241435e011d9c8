"""What jr2 may say that it applied to a live object, in the shape of the wanted one.

`derive` walks the fields that jr2 owns by server-side apply. Equal to the wanted object: nothing
drifted. A field that another manager took is left out, so it shows as an addition; a field that is
owned but no longer wanted keeps its live value, so it shows as a deletion. Inside an atomic value
only the paths that are wanted are compared, since the rest are defaults of the server: whoever
changes an atomic value takes it over as a whole, so nothing is missed. Of an object that the engine
replaces instead, a value that is as it is wanted counts as ours, whoever owns it.

Source: design §5.2; field case 9 (strings that the cluster rewrites).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from jr2 import quantity

from . import fields as managed
from .fields import Fields
from .live import LiveObject

Spelling = Literal["wanted", "live"]

_QUANTITY_MAPS: Final = frozenset({"limits", "requests"})
_QUANTITIES: Final = frozenset({"sizeLimit", "divisor"})
_FREE_TEXT: Final = frozenset({"labels", "annotations", "data", "binaryData", "stringData"})


def derive(wanted: Mapping[str, Any], live: LiveObject) -> dict[str, Any]:
    """Return the wanted object's shape with live values where jr2 owns the field.

    A value that is equal to the wanted one but spelled otherwise, such as a quantity, comes back as
    it is wanted. So the result equals `wanted` exactly when nothing drifted.

    Args:
        wanted: the wanted object; empty for a live object that is no longer wanted.
        live: the same object as the API gave it, with `managedFields`.
    """
    return _whole(wanted, live, "wanted")


def applied(wanted: Mapping[str, Any], live: LiveObject) -> dict[str, Any]:
    """Return the same as `derive`, with each value spelled as the API spells it.

    The engine's plugin compares with what a live object says, after it brought the wanted object
    into the API's spelling.
    """
    return _whole(wanted, live, "live")


def same_scalar(wanted: object, live: object, path: Sequence[str]) -> bool:
    """Say whether two values are equal where they stand; quantities are compared by value."""
    if managed.same_json(wanted, live):
        return True
    if not _is_quantity(path):
        return False
    try:
        first, second = (
            quantity.parse(quantity.canonical(quantity.spell(value))) for value in (wanted, live)
        )
    except quantity.QuantityError:
        return False
    return first == second


def _whole(wanted: Mapping[str, Any], live: LiveObject, spelling: Spelling) -> dict[str, Any]:
    fields = managed.applied_fields(live) or {}
    result: dict[str, Any] = {}
    if not managed.is_whole(fields):
        result = _mapping(wanted, live, fields, (), spelling)
    if managed.is_replaced(live):
        result = _with_equal_values(result, wanted, live, (), spelling)
    # These four are no fields of a manager: the API keeps them out of managedFields.
    result["apiVersion"], result["kind"] = live["apiVersion"], live["kind"]
    metadata = dict(result.get("metadata") or {})
    metadata["name"] = live["metadata"]["name"]
    if live["metadata"].get("namespace"):
        metadata["namespace"] = live["metadata"]["namespace"]
    result["metadata"] = metadata
    return result


def _with_equal_values(
    result: Mapping[str, Any],
    wanted: Mapping[str, Any],
    live: Mapping[str, Any],
    path: tuple[str, ...],
    spelling: Spelling,
) -> dict[str, Any]:
    """Add what another manager owns with the very value that is wanted.

    A replaced object does not change hands where its value stays: such a field would differ for
    ever, though nothing is to be changed.
    """
    added = dict(result)
    for name, value in wanted.items():
        if name not in live:
            continue
        here = (*path, name)
        if isinstance(value, Mapping) and isinstance(live[name], Mapping):
            inner = result.get(name)
            found = _with_equal_values(
                inner if isinstance(inner, Mapping) else {}, value, live[name], here, spelling
            )
            if found or name in result:
                added[name] = found
        elif name not in result and _holds(value, live[name], here):
            added[name] = _atomic(value, live[name], here, spelling)
    return added


def _holds(wanted: Any, live: Any, path: tuple[str, ...]) -> bool:
    """Say whether a value that is another's says all that is wanted.

    Of a value that is ours the API may have left out what says nothing; of another's it was taken
    away, such as the empty `status` that makes a subresource.
    """
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        return all(
            name in live and _holds(value, live[name], (*path, name))
            for name, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(live) and all(
            _holds(first, second, path) for first, second in zip(wanted, live, strict=True)
        )
    return same_scalar(wanted, live, path)


def _value(
    wanted: Any, live: Any, fields: Fields, path: tuple[str, ...], spelling: Spelling
) -> Any:
    if managed.is_whole(fields):
        return _atomic(wanted, live, path, spelling)
    if isinstance(live, Mapping):
        return _mapping(wanted if isinstance(wanted, Mapping) else {}, live, fields, path, spelling)
    if isinstance(live, list):
        return _list(wanted if isinstance(wanted, list) else [], live, fields, path, spelling)
    return _atomic(wanted, live, path, spelling)


def _mapping(
    wanted: Mapping[str, Any],
    live: Mapping[str, Any],
    fields: Fields,
    path: tuple[str, ...],
    spelling: Spelling,
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, inner in managed.names_in(fields):
        if name in live and name in wanted:
            result[name] = _value(wanted[name], live[name], inner, (*path, name), spelling)
        elif name in live:
            result[name] = live[name]
    # The API leaves out an empty list, and nobody owns it then. An empty mapping may mean something.
    for name, value in wanted.items():
        if name not in live and isinstance(value, list) and not value:
            result[name] = value
    return result


def _list(
    wanted: Sequence[Any],
    live: Sequence[Any],
    fields: Fields,
    path: tuple[str, ...],
    spelling: Spelling,
) -> list[Any]:
    keys = managed.merge_keys(fields)
    result: list[Any] = []
    for index, inner in managed.items_in(fields, live):
        item = live[index]
        partner = _partner(wanted, item, keys)
        result.append(item if partner is None else _value(partner, item, inner, path, spelling))
    return result


def _partner(wanted: Sequence[Any], item: Any, keys: Sequence[str]) -> Any:
    """Return the wanted item that a live item of a merged list is."""
    if not keys:
        return None
    key = managed.key_values(item, keys)
    return next((other for other in wanted if managed.has_key(other, key)), None)


def _atomic(wanted: Any, live: Any, path: tuple[str, ...], spelling: Spelling) -> Any:
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        result: dict[str, Any] = {}
        for name, value in wanted.items():
            if name in live:
                result[name] = _atomic(value, live[name], (*path, name), spelling)
            elif not value:
                # All of it is ours, so nobody took this away: the API leaves out what says nothing.
                result[name] = value
        return result
    if isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        return [
            _atomic(first, second, path, spelling)
            for first, second in zip(wanted, live, strict=True)
        ]
    if spelling == "wanted" and same_scalar(wanted, live, path):
        return wanted
    return live


def _is_quantity(path: Sequence[str]) -> bool:
    """Say whether a value at a path is a quantity; texts that people write are never one."""
    if not path or not _FREE_TEXT.isdisjoint(path[:-1]):
        return False
    return path[-1] in _QUANTITIES or (len(path) > 1 and path[-2] in _QUANTITY_MAPS)
