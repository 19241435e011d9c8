"""Watch the two maps that the Converge writes: `jr2-images` and `jr2-held`.

Each is watched alone, by its name, so the Role needs `list` and `watch` on these two names only. A
bookmark moves the place to resume from; any `ERROR` event, and a watch that is silent for longer
than the server promised, list again. The cluster need not be reachable: until it is, a map is not
known, and that is what `GET /assemblies` says.

Source: design §5.5 and §6.4, spec/runtime.md §1.12.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2

from jr2 import names
from jr2.wire import Maps

SERVER_TIMEOUT: Final = 240
"""Seconds after which the server is asked to end a watch."""
SILENT_AFTER: Final = 75.0
"""Seconds without a byte after which a watch is not believed any more; bookmarks come each minute."""
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
LONGEST_LINE: Final = 8 * 2**20

log = logging.getLogger("jr2.watch")


class WatchBroken(Exception):
    """The watch ended in a way after which the map must be listed again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """How the API server is reached from inside a pod."""

    url: str
    namespace: str
    token_file: Path
    ca_file: Path | None

    @classmethod
    def find(cls, environment: Mapping[str, str], account: Path) -> Cluster | None:
        """Return the cluster that this pod runs in; `None` outside of one."""
        host = environment.get("KUBERNETES_SERVICE_HOST")
        namespace = environment.get(names.ENV_NAMESPACE)
        if not host or not namespace or not (account / "token").is_file():
            return None
        port = environment.get("KUBERNETES_SERVICE_PORT", "443")
        shown = f"[{host}]" if ":" in host else host
        return cls(
            url=f"https://{shown}:{port}",
            namespace=namespace,
            token_file=account / "token",
            ca_file=account / "ca.crt",
        )

    def client(self, transport: httpx2.AsyncBaseTransport | None = None) -> httpx2.AsyncClient:
        """Return a client that reads the token at each request: the kubelet renews it."""

        async def authorize(request: httpx2.Request) -> None:
            token = await asyncio.to_thread(self.token_file.read_text)
            request.headers["Authorization"] = f"Bearer {token.strip()}"

        verify = ssl.create_default_context(cafile=self.ca_file) if self.ca_file else True
        return httpx2.AsyncClient(
            base_url=self.url,
            verify=verify,
            transport=transport,
            timeout=httpx2.Timeout(10.0, read=SILENT_AFTER),
            event_hooks={"request": [authorize]},
            trust_env=False,
        )


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
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        pause = FIRST_PAUSE
        version: str | None = None
        while True:
            try:
                if version is None:
                    version = await self._list(client, path)
                pause = FIRST_PAUSE
                version = await self._watch(client, path, version)
                continue  # the server ended the watch in its time: resume at once
            except WatchBroken as broken:
                reason = str(broken)
            except Exception as failed:
                # The root of the watch: whatever a server says, the Orchestrator goes on.
                reason = f"{type(failed).__name__}: {failed}"
            version = None
            log.warning("a map is listed again", extra={"map": self._name, "reason": reason[:300]})
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _list(self, client: httpx2.AsyncClient, path: str) -> str:
        answer = await client.get(path, params={"fieldSelector": f"metadata.name={self._name}"})
        answer.raise_for_status()
        found = answer.json()
        items = found.get("items") or []
        self._take(items[0] if items else None)
        return str(found["metadata"]["resourceVersion"])

    async def _watch(self, client: httpx2.AsyncClient, path: str, version: str) -> str:
        """Follow the map from a version; return the one to resume from."""
        query = {
            "fieldSelector": f"metadata.name={self._name}",
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(SERVER_TIMEOUT),
        }
        heard = False
        async with client.stream("GET", path, params=query) as answer:
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
        match event.get("type"):
            case "ERROR":
                raise WatchBroken(f"ERROR {object_.get('code')}: {object_.get('message')}")
            case "ADDED" | "MODIFIED":
                self._take(object_)
            case "DELETED":
                self._take(None)
        return str((object_.get("metadata") or {}).get("resourceVersion") or version)

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
