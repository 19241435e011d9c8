"""Follow a list of objects: list it, watch it, and list it again when the watch is not believed.

A bookmark moves the place to resume from. Any `ERROR` event, and a watch that is silent for longer
than the server promised, list again. The API server need not be reachable: what goes wrong is
logged and tried again with longer pauses.

Source: design §6.4, spec/runtime.md §1.12.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import httpx2

SERVER_TIMEOUT: Final = 240
"""Seconds after which the server is asked to end a watch."""
SILENT_AFTER: Final = 75.0
"""Seconds without a byte after which a watch is not believed any more; bookmarks come each minute."""
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
LONGEST_LINE: Final = 8 * 2**20

Change = Literal["ADDED", "MODIFIED", "DELETED"]
_CHANGES: Final[Mapping[str, Change]] = {
    "ADDED": "ADDED",
    "MODIFIED": "MODIFIED",
    "DELETED": "DELETED",
}

log = logging.getLogger("jr2.watch")


class WatchBroken(Exception):
    """The watch ended in a way after which the objects must be listed again."""


@dataclass(slots=True, kw_only=True)
class Follow:
    """Follows what one list of the API holds.

    Args:
        what: what the list is of, for the log.
        path: the path of the list.
        query: what narrows the list, such as a field selector.
        listed: gets all objects after each list.
        changed: gets each change that the watch tells.
        heard: is called whenever the server said anything, bookmarks included.
    """

    what: str
    path: str
    listed: Callable[[Sequence[Mapping[str, Any]]], None]
    changed: Callable[[Change, Mapping[str, Any]], None]
    query: Mapping[str, str] = field(default_factory=dict)
    heard: Callable[[], None] = lambda: None

    async def run(self, client: httpx2.AsyncClient) -> None:
        """Follow until cancelled; what goes wrong is logged and tried again."""
        pause = FIRST_PAUSE
        version: str | None = None
        while True:
            try:
                if version is None:
                    version = await self._list(client)
                pause = FIRST_PAUSE
                version = await self._watch(client, version)
                continue  # the server ended the watch in its time: resume at once
            except WatchBroken as broken:
                reason = str(broken)
            except Exception as failed:
                # The root of the watch: whatever a server says, the program goes on.
                reason = f"{type(failed).__name__}: {failed}"
            version = None
            log.warning("listed again", extra={"what": self.what, "reason": reason[:300]})
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _list(self, client: httpx2.AsyncClient) -> str:
        answer = await client.get(self.path, params=dict(self.query))
        answer.raise_for_status()
        found = answer.json()
        self.heard()
        self.listed(found.get("items") or [])
        return str(found["metadata"]["resourceVersion"])

    async def _watch(self, client: httpx2.AsyncClient, version: str) -> str:
        """Follow from a version; return the one to resume from."""
        query = {
            **self.query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(SERVER_TIMEOUT),
        }
        heard = False
        async with client.stream("GET", self.path, params=query) as answer:
            if answer.status_code != 200:
                raise WatchBroken(f"the API server answered {answer.status_code}")
            async for line in answer.aiter_lines():
                if len(line) > LONGEST_LINE:
                    raise WatchBroken("an event is too long")
                if line.strip():
                    heard = True
                    version = self._event(json.loads(line), version)
        if not heard:
            # An end without a word: resuming at once could turn into a loop.
            raise WatchBroken("the watch ended without an event")
        return version

    def _event(self, event: dict[str, Any], version: str) -> str:
        object_ = event.get("object") or {}
        type_ = str(event.get("type"))
        if type_ == "ERROR":
            raise WatchBroken(f"ERROR {object_.get('code')}: {object_.get('message')}")
        self.heard()
        if type_ in _CHANGES:
            self.changed(_CHANGES[type_], object_)
        return str((object_.get("metadata") or {}).get("resourceVersion") or version)
