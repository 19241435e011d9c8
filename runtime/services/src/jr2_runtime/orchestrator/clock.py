"""The time, as something that is handed in: milliseconds since 1970, and a wait that can be cut.

A timer is a row with an absolute due time, so that it survives a restart. Nothing else in the
Orchestrator reads a clock, which is why a test can fire a timer of seven days at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Protocol


class Clock(Protocol):
    """The wall clock, or a test's."""

    def now(self) -> int:
        """Return milliseconds since the epoch."""

    async def wait(self, wake: asyncio.Event, milliseconds: int) -> None:
        """Return when `wake` is set or the time has passed."""


class WallClock:
    """The machine's own clock."""

    def now(self) -> int:
        """Return milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    async def wait(self, wake: asyncio.Event, milliseconds: int) -> None:
        """Return when `wake` is set or the time has passed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0, milliseconds) / 1000):
                await wake.wait()
