"""Nothing more: what another manager added to an object where jr2 must be the only one.

Server-side apply leaves in place what others put beside our fields: a second container, a further
rule, one more key of a Secret. Everything in an object but its metadata is compared. What is not
wanted is named and taken away, unless the server put it there by default, a person restarted the
pods, or an autoscaler scaled them.

Source: design §5.2 (Nothing more).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import fields as managed
from ..fields import Path
from ..live import LiveObject, ObjectKey, key_of
from .walk import RESTARTED_AT, surplus
from .words import words

__all__ = ["RESTARTED_AT", "More", "healing", "nothing_more"]


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
    return [
        More(
            key=key,
            what=words(live, found.path),
            by=", ".join(managed.owners(live, found.path)),
            path=found.at,
            instead=found.instead,
        )
        for found in surplus(wanted, live)
    ]


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


def _pointer(path: Path) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _order(item: More) -> tuple[tuple[int, str], ...]:
    return tuple((step, "") if isinstance(step, int) else (-1, step) for step in item.path)
