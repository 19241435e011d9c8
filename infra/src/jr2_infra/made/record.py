"""The record of what was made: what it says, and what one converge will write into it.

An object counts as made when the record has its uid. The uid of an object is known only after it
was made, so before that the record gets the digest of a random mark, and the object gets the mark
itself. After a kill between the two, an object that carries the mark is ours, since nobody could
know it before; the next converge writes down its uid. An object whose name is wanted and that the
record does not know (somebody else made it, or an earlier Kit version) is applied with a new mark,
and counts from then on.

A record that nobody can read says nothing: then nothing is deleted.

Source: design §5.2, ADR-0154.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jr2 import names

from .. import closed_list
from ..closed_list import CLAIM, NAMESPACE
from ..derived import LiveObject, LiveObjects, ObjectKey, is_applied, key_of
from ..resources import KubernetesResource

_MARK_BYTES: Final = 16


class _Text(BaseModel):
    """The annotation as it stands; `v` changes when an older Kit could misread it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    v: Literal[1] = 1
    uids: dict[str, str] = Field(default_factory=dict)
    pending: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a record says.

    Args:
        uids: the uid of each object that a converge made, by kind and name.
        pending: the SHA-256 of the mark of each object that one began to make.
    """

    uids: Mapping[str, str] = field(default_factory=dict)
    pending: Mapping[str, str] = field(default_factory=dict)

    def holds(self, obj: LiveObject) -> bool:
        """Say whether a converge made this very object."""
        name = _entry(key_of(obj))
        if self.uids.get(name) == obj["metadata"]["uid"]:
            return True
        mark = _mark_of(obj)
        return mark is not None and is_applied(obj) and self.pending.get(name) == _digest(mark)

    def text(self) -> str:
        """Return it as it stands in the cluster: names, uids and digests, no value."""
        body = _Text(uids=dict(sorted(self.uids.items())), pending=dict(self.pending))
        return body.model_dump_json()


class Marks:
    """The marks of one run; asked twice for the same object, it gives the same.

    Args:
        mint: makes a random text of so many bytes.
    """

    def __init__(self, mint: Callable[[int], str] = secrets.token_hex) -> None:
        self._mint = mint
        self._all: dict[ObjectKey, str] = {}

    def of(self, key: ObjectKey) -> str:
        """Return the mark of one object."""
        return self._all.setdefault(key, self._mint(_MARK_BYTES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Marking:
    """What one converge says of the objects that it makes.

    Args:
        found: the text that stands in the cluster; `None` when there is none.
        standing: what that text says.
        marks: the mark of each object that it wants.
        record: what must be written down before any of them is made or deleted.
    """

    found: str | None
    standing: Made = field(repr=False)
    marks: Mapping[ObjectKey, str] = field(repr=False)
    record: Made = field(repr=False)

    @property
    def is_settled(self) -> bool:
        """The cluster's record says already all that there is to say."""
        return self.record == self.standing and not self.record.pending

    def marked(self, resource: KubernetesResource) -> KubernetesResource:
        """Return a resource whose object carries its mark."""
        mark = self.marks.get(key_of(resource.object))
        if mark is None:
            return resource
        metadata = dict(resource.object["metadata"])
        metadata["annotations"] = {
            **(metadata.get("annotations") or {}),
            names.ANNOTATION_MARK: mark,
        }
        return replace(resource, object={**resource.object, "metadata": metadata})


def read(live: LiveObjects, namespace: str) -> tuple[str | None, Made]:
    """Return the record of a namespace: its text, and what it says.

    Args:
        live: the live objects, with the Namespace.
        namespace: its name.
    """
    found = live.get(ObjectKey(NAMESPACE.api_version, NAMESPACE.kind, None, namespace))
    text = ((found or {}).get("metadata", {}).get("annotations") or {}).get(names.ANNOTATION_MADE)
    if text is None:
        return None, Made()
    try:
        said = _Text.model_validate_json(text)
    except ValidationError:
        return str(text), Made()
    return str(text), Made(uids=said.uids, pending=said.pending)


def marking(
    live: LiveObjects,
    wanted: Sequence[ObjectKey],
    *,
    anew: Collection[ObjectKey],
    namespace: str,
    marks: Marks,
) -> Marking:
    """Decide what is written down, and which mark each wanted object carries.

    An object that was made keeps the mark that it has, so that nothing differs.

    Args:
        live: the live objects, with the Namespace.
        wanted: the objects of the program.
        anew: those of them that are deleted and made again.
        namespace: the Instance's.
        marks: makes those that are missing, the same ones for a whole run.
    """
    text, made = read(live, namespace)
    kept = {key: obj for key, obj in live.items() if _is_recorded(key, namespace)}
    ours = {key: obj for key, obj in kept.items() if made.holds(obj)}
    found: dict[ObjectKey, str] = {}
    pending: dict[str, str] = {}
    for key in wanted:
        if not _is_recorded(key, namespace):
            continue
        known = None if key in anew else ours.get(key)
        found[key] = (_mark_of(known) if known is not None else None) or marks.of(key)
        if known is None:
            pending[_entry(key)] = _digest(found[key])
    uids = {_entry(key): str(obj["metadata"]["uid"]) for key, obj in ours.items()}
    return Marking(found=text, standing=made, marks=found, record=Made(uids=uids, pending=pending))


def settled(record: Made, live: LiveObjects, namespace: str) -> Made:
    """Return what a record says once its converge is over: the uids of what is there.

    Args:
        record: what was written before the first object was made.
        live: the live objects now.
        namespace: the Instance's.
    """
    return Made(
        uids={
            _entry(key): str(obj["metadata"]["uid"])
            for key, obj in live.items()
            if _is_recorded(key, namespace) and record.holds(obj)
        }
    )


def left_lines(unwanted: Iterable[LiveObject]) -> tuple[str, ...]:
    """Return one line for each object that looks like one of jr2's and that none of its runs made.

    Args:
        unwanted: objects with a name of the closed list that no record holds.
    """
    lines: list[str] = []
    for obj in unwanted:
        if is_applied(obj):
            key = key_of(obj)
            lines.append(
                f"left alone: {key.kind} {key.name} carries the marks of jr2, and nothing says "
                f"that a converge made it — if nobody needs it: kubectl -n {key.namespace} delete "
                f"{key.kind.lower()} {key.name}"
            )
    return tuple(lines)


def _is_recorded(key: ObjectKey, namespace: str) -> bool:
    """Say whether an object is one that a converge may have to delete one day."""
    return key.namespace == namespace and key.kind != CLAIM.kind and closed_list.is_listed(key)


def _entry(key: ObjectKey) -> str:
    return f"{key.kind}/{key.name}"


def _mark_of(obj: LiveObject) -> str | None:
    mark: Any = (obj["metadata"].get("annotations") or {}).get(names.ANNOTATION_MARK)
    return mark if isinstance(mark, str) and mark else None


def _digest(mark: str) -> str:
    return hashlib.sha256(mark.encode()).hexdigest()
