"""Watch the two maps that the Converge writes: `jr2-images` and `jr2-held`.

Each is watched alone, by its name, so the Role needs `list` and `watch` on these two names only.
The cluster need not be reachable: until it is, a map is not known, and that is what
`GET /assemblies` says.

Source: design §5.5 and §6.4, spec/runtime.md §1.12.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

from jr2 import names
from jr2.wire import Maps

from ..cluster import Cluster, Follow
from ..cluster.following import Change

log = logging.getLogger("jr2.watch")


class MapWatch:
    """The digest of one key of one ConfigMap, kept up to date.

    Args:
        name: the ConfigMap.
        key: the key of its data.
    """

    def __init__(self, name: str, key: str) -> None:
        self._name = name
        self._key = key
        self.digest: str | None = None
        """SHA-256 of the value, hex; `None` while the map or its key is absent or not yet read."""

    async def run(self, client: httpx2.AsyncClient, namespace: str) -> None:
        """Watch until cancelled; what goes wrong is logged and tried again."""
        await Follow(
            what=self._name,
            path=f"/api/v1/namespaces/{namespace}/configmaps",
            query={"fieldSelector": f"metadata.name={self._name}"},
            listed=self._listed,
            changed=self._changed,
        ).run(client)

    def _listed(self, items: Sequence[Mapping[str, Any]]) -> None:
        self._take(items[0] if items else None)

    def _changed(self, change: Change, object_: Mapping[str, Any]) -> None:
        self._take(None if change == "DELETED" else object_)

    def _take(self, object_: Mapping[str, Any] | None) -> None:
        value = ((object_ or {}).get("data") or {}).get(self._key)
        digest = hashlib.sha256(value.encode()).hexdigest() if isinstance(value, str) else None
        if digest != self.digest:
            self.digest = digest
            log.info("a map was read", extra={"map": self._name, "digest": digest})


class Watches:
    """Both maps; without a cluster nothing is watched and nothing is known."""

    def __init__(self) -> None:
        self._images = MapWatch(names.IMAGES_MAP, names.IMAGES_KEY)
        self._held = MapWatch(names.HELD_MAP, names.HELD_KEY)

    def digests(self) -> Maps:
        """Return what is known of the maps."""
        return Maps(images=self._images.digest, held=self._held.digest)

    async def run(
        self, cluster: Cluster, transport: httpx2.AsyncBaseTransport | None = None
    ) -> None:
        """Watch both maps until cancelled."""
        async with cluster.client(transport) as client, asyncio.TaskGroup() as group:
            group.create_task(self._images.run(client, cluster.namespace))
            group.create_task(self._held.run(client, cluster.namespace))
