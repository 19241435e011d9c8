"""Lists of live runs, which may be many and large: neither their memory nor their time is the loop's.

What a run shows is read and written as JSON in the thread that reads the store. The list of whole
statuses is sent a piece at a time, so that at most a piece of it is in memory, however many runs wait
and however much context each has. The list that anybody may see leaves the contexts in the store.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Final

from ..engine import shown
from ..store import Run, Store
from ..store import runs as rows

PIECE: Final = 256 * 2**10
"""About so many bytes of the list are written at once."""


async def statuses(store: Store, current: str | None) -> AsyncIterator[bytes]:
    """Yield the JSON array of every live run, in the order of their start.

    A run that settles while the list is written may be left out.

    Args:
        store: where they are.
        current: the hash of the current Assembly.
    """
    ids, stuck = await store.read(lambda db: (rows.live_ids(db), set(rows.stuck(db))))
    before, at = "[", 0
    while at < len(ids):
        texts, at = await store.read(
            lambda db, at=at: _some(db, ids, at, stuck, current)  # type: ignore[misc]
        )
        if texts:
            yield (before + ",".join(texts)).encode()
            before = ","
    yield b"[]" if before == "[" else b"]"


def _some(
    db: sqlite3.Connection,
    ids: Sequence[str],
    at: int,
    stuck: Collection[str],
    current: str | None,
) -> tuple[list[str], int]:
    """Return the statuses of the next runs as JSON texts, and where the list goes on."""
    texts: list[str] = []
    size = 0
    while at < len(ids) and size < PIECE:
        run = rows.read_shown(db, ids[at])
        at += 1
        if run is not None and run.status == "live":
            texts.append(shown.status_text(run, current, is_stuck=run.id in stuck))
            size += len(texts[-1])
    return texts, at


async def observations(store: Store, workflow: str) -> bytes:
    """Return the JSON array of the live runs of a Workflow, as anybody may see them."""
    return await store.read(lambda db: _observations(rows.observed(db, workflow)).encode())


def _observations(runs: Sequence[Run]) -> str:
    return json.dumps([shown.dump(shown.observation(run)) for run in runs], separators=(",", ":"))
