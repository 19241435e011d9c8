"""The time, as something that is handed in: milliseconds since 1970, and a wait that can be cut.

A timer is a row with an absolute due time, so that it survives a restart. Nothing else in the
Orchestrator reads a clock, which is why a test can fire a timer of seven days at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final, Protocol

log = logging.getLogger("jr2.clock")


class Clock(Protocol):
    """The wall clock, or a test's."""

    def now(self) -> int:
        """Return milliseconds since the epoch."""

    async def wait(self, wake: asyncio.Event, milliseconds: int) -> None:
        """Return when `wake` is set or the time has passed."""


_JUMP_MS: Final = 1_000
"""By how much a wall clock must miss what has passed to have been set, and not only steered."""


class WallClock:
    """The machine's own clock, which does not go back while the program runs.

    A delay of an hour ends after an hour also when somebody sets the clock back in between: the
    time goes on from where it was. A clock that is set forward is followed at once, as after a
    suspend, but for what it only makes good. A restart begins with the machine's time again.

    Args:
        wall: nanoseconds since the epoch.
        steady: nanoseconds of a clock that nobody sets.

    Source: ADR-0166.
    """

    def __init__(
        self, wall: Callable[[], int] = time.time_ns, steady: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._ahead = 0
        self._last = wall() // 1_000_000
        self._read_at = steady() // 1_000_000

    def now(self) -> int:
        """Return milliseconds since the epoch."""
        wall, steady = self._wall() // 1_000_000, self._steady() // 1_000_000
        expected = self._last + steady - self._read_at
        missed = wall + self._ahead - expected
        if missed < -_JUMP_MS:
            log.warning("the clock went back by %d s; the time goes on", -missed // 1_000)
            self._ahead = expected - wall
        elif missed > _JUMP_MS and self._ahead:
            self._ahead = max(0, expected - wall)
        self._last, self._read_at = max(self._last, wall + self._ahead), steady
        return self._last

    async def wait(self, wake: asyncio.Event, milliseconds: int) -> None:
        """Return when `wake` is set or the time has passed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0, milliseconds) / 1000):
                await wake.wait()
