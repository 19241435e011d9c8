"""Fire what is due, most overdue first; a timer is a row with an absolute due time.

A fired timer stays a row until the step that consumes it is committed. After a restart it is due
again, and fires at once.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from typing import Final

from ..clock import Clock
from ..store import Store
from ..store import runs as rows
from ..store.rows import Timer

_BATCH: Final = 2048
"""How many more timers are read at once than those that have fired and are not recorded yet."""
_LONGEST_WAIT_MS: Final = 30_000
"""The wall clock may be set, so it is read again at least this often."""


_PAUSE_MS: Final = 1_000

log = logging.getLogger("jr2.engine")


class Timers:
    """The loop that looks for due timers.

    Args:
        fire: queues the event of a timer; `settled` is called when it was consumed or dropped.
    """

    def __init__(
        self, store: Store, clock: Clock, kit_version: str, fire: Callable[[Timer], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._kit_version = kit_version
        self._fire = fire
        self._in_flight: set[tuple[str, str]] = set()
        self._wake = asyncio.Event()

    def look(self) -> None:
        """Look again: a timer was armed, or runs became loadable."""
        self._wake.set()

    def settled(self, run: str, key: str) -> None:
        """The event of a timer was consumed or dropped."""
        self._in_flight.discard((run, key))

    async def run(self) -> None:
        """Fire timers until cancelled."""
        while True:
            self._wake.clear()
            now = self._clock.now()
            limit = len(self._in_flight) + _BATCH
            try:
                due, following = await self._store.read(
                    lambda db, now=now, limit=limit: rows.due(db, now, self._kit_version, limit)  # type: ignore[misc]
                )
            except sqlite3.Error:
                log.exception("the timers could not be read")
                await self._clock.wait(self._wake, _PAUSE_MS)
                continue
            fresh = [timer for timer in due if (timer.run, timer.key) not in self._in_flight]
            for timer in fresh:
                self._in_flight.add((timer.run, timer.key))
                self._fire(timer)
            if fresh and len(due) == limit:
                continue
            wait = _LONGEST_WAIT_MS if following is None else following - now
            await self._clock.wait(self._wake, min(wait, _LONGEST_WAIT_MS))
