"""Who may use a process at the same time: many together, or one that has to be alone.

Source: design §4.4 ("the unanswered event is retried alone").
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator


class Lanes:
    """Lets up to `width` users in together; one who wants to be alone goes before them.

    Args:
        width: how many are in at once.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._inside = 0
        self._lonely = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._empty = asyncio.Event()
        self._empty.set()
        self._only = asyncio.Lock()

    async def enter(self) -> None:
        """Wait for room among the others; `leave` follows."""
        while self._lonely or self._inside >= self._width:
            room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(room)
            try:
                await room
            except asyncio.CancelledError:
                # The room that was given to somebody who has gone is given on.
                self._let_in()
                raise
        self._inside += 1
        self._empty.clear()

    def leave(self) -> None:
        """Make room."""
        self._inside -= 1
        if not self._inside:
            self._empty.set()
        self._let_in()

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Wait until nobody else is in, and keep everybody out."""
        self._lonely += 1
        try:
            async with self._only:
                await self._empty.wait()
                yield
        finally:
            self._lonely -= 1
            self._let_in()

    def _let_in(self) -> None:
        """Wake as many as there is room for; each looks again itself."""
        room = 0 if self._lonely else self._width - self._inside
        while room > 0 and self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                room -= 1
