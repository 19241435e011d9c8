"""What the events of a namespace say about a rollout: what is pulled, mounted and made.

A container that waits says only `ContainerCreating` while its image is pulled and while a volume
cannot be mounted; a controller that may make no pod says so in an event, and a ReplicaSet alone in
its status too. Events are read as they are: they can be missing, and their order is that of their
times.

Source: spec/converge.md §6.5, field case 1, field cases (An image that is pulled for minutes).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from . import pods

Event = Mapping[str, Any]

_PULLED_IMAGE: Final = re.compile(r"image \"(?P<image>[^\"]+)\"")
_AFTER_MOUNTS: Final = frozenset({"Pulling", "Pulled", "Created", "Started"})
_NO_SUCH_OBJECT: Final = re.compile(
    r"\b(?P<kind>secret|configmap) \"(?P<name>[^\"]+)\" not found"
    r"|references non-existent (?P<what>secret|config) key: (?P<key>\S+)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Why a controller makes no pod.

    Args:
        text: its reason and its words.
        since: when it said so first, as the API writes times.
    """

    text: str
    since: str


def of_object(events: Sequence[Event], name: str, uid: str = "") -> list[Event]:
    """Return the events about one object, oldest first."""
    own = [
        event
        for event in events
        if (event.get("involvedObject") or {}).get("name") == name
        and (not uid or (event.get("involvedObject") or {}).get("uid") in ("", None, uid))
    ]
    return sorted(own, key=_time)


def pulled_now(events: Sequence[Event], pod: pods.Pod) -> tuple[str, ...]:
    """Return the images that a pod waits for while its node pulls them."""
    if not pods.is_being_made(pod):
        return ()
    last: dict[str, Event] = {}
    for event in _of_pod(events, pod):
        if event.get("reason") in ("Pulling", "Pulled", "Failed", "BackOff"):
            place = str((event.get("involvedObject") or {}).get("fieldPath") or "")
            before = last.get(place)
            # Two events of one second: the pull that began has ended.
            ends = event.get("reason") != "Pulling"
            if before is None or ends or _time(event) > _time(before):
                last[place] = event
    images = (
        _PULLED_IMAGE.search(str(event.get("message") or ""))
        for event in last.values()
        if event.get("reason") == "Pulling"
    )
    return tuple(dict.fromkeys(found["image"] for found in images if found))


def failed_mount(events: Sequence[Event], pod: pods.Pod) -> str:
    """Return why a volume of a pod cannot be mounted, when the object that it names is missing."""
    if not pods.is_being_made(pod):
        return ""
    said = ""
    for event in _of_pod(events, pod):
        text = str(event.get("message") or "").strip()
        if event.get("reason") == "FailedMount" and _NO_SUCH_OBJECT.search(text):
            said = text
        elif event.get("reason") in _AFTER_MOUNTS:
            said = ""
    return said


def missing_object(text: str) -> tuple[str, str, str] | None:
    """Return kind, name and key of the object that a message of the kubelet misses.

    The name is empty when only the key is known, and the key when the whole object is missing.
    """
    found = _NO_SUCH_OBJECT.search(text)
    if found is None:
        return None
    word = str(found["kind"] or found["what"])
    kind = "ConfigMap" if word.lower().startswith("config") else "Secret"
    return kind, found["name"] or "", found["key"] or ""


def refused_creation(events: Sequence[Event], maker: Mapping[str, Any]) -> Refused | None:
    """Return why a controller makes no pod of an object; `None` when it made one since."""
    uid = str(maker.get("metadata", {}).get("uid") or "")
    last: Event | None = None
    for event in of_object(events, pods.name_of(maker), uid):
        if event.get("reason") == "FailedCreate":
            last = event
        elif event.get("reason") == "SuccessfulCreate":
            last = None
    if last is None:
        return None
    text = f"{last.get('reason')}: {str(last.get('message') or '').strip()}"
    return Refused(text=text, since=str(last.get("firstTimestamp") or _time(last)))


def _of_pod(events: Sequence[Event], pod: pods.Pod) -> Iterator[Event]:
    uid = str(pod.get("metadata", {}).get("uid") or "")
    yield from of_object(events, pods.name_of(pod), uid)


def _time(event: Event) -> str:
    series = event.get("series") or {}
    return str(
        event.get("lastTimestamp")
        or series.get("lastObservedTime")
        or event.get("eventTime")
        or event.get("firstTimestamp")
        or ""
    )
