"""Follow the Repos of the Instance, and bring the entry of this node on each to what it should be.

Level-triggered: a change only marks a Repo, and one loop looks at what is marked. A write that fails
leaves the mark, and is tried again with longer pauses.

Source: design §6.4, spec/converge.md §12.3.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import httpx2

from jr2 import names

from ..cluster import Cluster, Follow
from ..cluster.following import Change
from . import entries

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
SILENCE_LIMIT: Final = 300.0
"""Seconds without a word of the API server after which the agent is started again."""
_GONE: Final = frozenset({404, 409})
"""The Repo is not there any more, or another one of its name is."""

log = logging.getLogger("jr2.repo-cache")


class Agent:
    """The Repo cache of one node.

    Args:
        cluster: how the API server is reached.
        node: the node.
        clock: seconds of a clock that only moves forward.
    """

    def __init__(
        self, cluster: Cluster, node: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cluster = cluster
        self._node = node
        self._clock = clock
        self._repos: dict[str, entries.Repo] = {}
        self._marked: set[str] = set()
        self._work = asyncio.Event()
        self._heard_at = clock()
        self.has_listed = False
        """Whether the Repos were listed once; until then nobody knows what this node should hold."""

    def silence(self) -> float:
        """Return for how many seconds the API server has said nothing."""
        return self._clock() - self._heard_at

    async def run(self, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        """Work until cancelled."""
        async with self._cluster.client(transport) as client, asyncio.TaskGroup() as group:
            group.create_task(self._follow().run(client))
            group.create_task(self._write(client))

    def _follow(self) -> Follow:
        return Follow(
            what="repos",
            path=f"{_root()}/namespaces/{self._cluster.namespace}/repos",
            listed=self._listed,
            changed=self._changed,
            heard=self._heard,
        )

    def _heard(self) -> None:
        self._heard_at = self._clock()

    def _listed(self, repos: Sequence[Mapping[str, Any]]) -> None:
        self._repos = {repo["metadata"]["name"]: repo for repo in repos}
        self._marked = set(self._repos)
        self.has_listed = True
        self._work.set()

    def _changed(self, change: Change, repo: Mapping[str, Any]) -> None:
        name = repo["metadata"]["name"]
        if change == "DELETED":
            self._repos.pop(name, None)
            self._marked.discard(name)
            return
        self._repos[name] = repo
        self._marked.add(name)
        self._work.set()

    async def _write(self, client: httpx2.AsyncClient) -> None:
        pause = FIRST_PAUSE
        while True:
            await self._work.wait()
            self._work.clear()
            try:
                await self._write_marked(client)
            except (httpx2.HTTPError, OSError) as failed:
                log.warning(
                    "what this node says of the Repos is written again",
                    extra={"reason": f"{type(failed).__name__}: {failed}"[:300]},
                )
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                self._work.set()
            else:
                pause = FIRST_PAUSE

    async def _write_marked(self, client: httpx2.AsyncClient) -> None:
        for name in sorted(self._marked):
            repo = self._repos.get(name)
            if repo is not None and not entries.is_said(repo, self._node):
                await self._say(client, repo)
            # Marked anew meanwhile, it has another object, and is looked at again.
            if self._repos.get(name) is repo:
                self._marked.discard(name)

    async def _say(self, client: httpx2.AsyncClient, repo: entries.Repo) -> None:
        patch = entries.status_patch(repo, self._node)
        metadata = patch["metadata"]
        answer = await client.patch(
            f"{_root()}/namespaces/{metadata['namespace']}/repos/{metadata['name']}/status",
            params={"fieldManager": f"{names.REPO_CACHE}-{self._node}"[:128], "force": "true"},
            content=json.dumps(patch).encode(),
            headers={"Content-Type": "application/apply-patch+yaml"},
        )
        self._heard()
        if answer.status_code in _GONE:
            return
        answer.raise_for_status()
        log.info(
            "said what this node holds of a Repo",
            extra={"repo": metadata["name"], "reason": entries.NO_CLONES},
        )


def _root() -> str:
    return f"/apis/{names.API_GROUP}/{names.API_VERSION}"
