"""The objects of the cluster as the API gave them, with their `managedFields`.

A fact reads them with one LIST for each kind; the checkpoint, the proof and "nothing more" are
derived from them, and none of these reads the cluster again.

Source: design §5.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

LiveObject = Mapping[str, Any]
"""One object as the API gave it: plain dicts, lists and scalars."""


class ObjectKey(NamedTuple):
    """Which object: `namespace` is `None` for an object of the cluster."""

    api_version: str
    kind: str
    namespace: str | None
    name: str


LiveObjects = Mapping[ObjectKey, LiveObject]


def key_of(obj: LiveObject) -> ObjectKey:
    """Return the key of a live or a wanted object."""
    metadata = obj["metadata"]
    return ObjectKey(obj["apiVersion"], obj["kind"], metadata.get("namespace"), metadata["name"])


def live_objects(objects: Iterable[LiveObject]) -> dict[ObjectKey, LiveObject]:
    """Index objects by their key."""
    return {key_of(obj): obj for obj in objects}
