"""Which fields of two objects differ, and who changed them.

Source: design §5.2 (the plan names what a hand edit changed) and §5.6 (values of Secrets are never
shown).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import fields as managed
from .fields import Path

ChangeKind = Literal["add", "update", "delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One field that is not as it is wanted.

    Args:
        path: where it stands, such as `spec.template.spec.containers[orchestrator].image`.
        kind: `add` when it is missing, `update` when it has another value, `delete` when it is no
            longer wanted.
        by: the managers that own the field now, beside jr2; empty when the program changed.
    """

    path: str
    kind: ChangeKind
    by: tuple[str, ...] = ()


def changed_paths(
    now: Mapping[str, Any], wanted: Mapping[str, Any]
) -> Iterator[tuple[Path, ChangeKind]]:
    """Give where two objects differ, in the order of the names.

    Args:
        now: what stands.
        wanted: what should stand.
    """
    yield from _mapping(now, wanted, ())


def _mapping(
    now: Mapping[str, Any], wanted: Mapping[str, Any], path: Path
) -> Iterator[tuple[Path, ChangeKind]]:
    for name in sorted({*now, *wanted}):
        here = (*path, name)
        if name not in now:
            yield here, "add"
        elif name not in wanted:
            yield here, "delete"
        else:
            yield from _value(now[name], wanted[name], here)


def _value(now: Any, wanted: Any, path: Path) -> Iterator[tuple[Path, ChangeKind]]:
    if isinstance(now, Mapping) and isinstance(wanted, Mapping):
        yield from _mapping(now, wanted, path)
    elif isinstance(now, list) and isinstance(wanted, list) and len(now) == len(wanted):
        for index, (first, second) in enumerate(zip(now, wanted, strict=True)):
            yield from _value(first, second, (*path, index))
    elif not managed.same_json(now, wanted):
        yield path, "update"


def at(obj: Any, path: Path) -> Any:
    """Return the value at a path; `None` where there is none."""
    for step in path:
        if isinstance(step, int):
            obj = obj[step] if isinstance(obj, list) and step < len(obj) else None
        else:
            obj = obj.get(step) if isinstance(obj, Mapping) else None
    return obj


def spelled(path: Path, obj: object) -> str:
    """Return a path as a person reads it; items of a list are named where they have a name.

    Args:
        path: the path.
        obj: the object that it leads through.
    """
    text = ""
    for step in path:
        if isinstance(step, int):
            item = obj[step] if isinstance(obj, Sequence) and step < len(obj) else None
            name = item.get("name") if isinstance(item, Mapping) else None
            text += f"[{name if isinstance(name, str) else step}]"
            obj = item
            continue
        plain = step.replace("-", "").replace("_", "").isalnum()
        text += f".{step}" if plain else f"[{step!r}]".replace("'", '"')
        obj = obj.get(step) if isinstance(obj, Mapping) else None
    return text.removeprefix(".")
