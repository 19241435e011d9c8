"""The application of a bench behind the real server, on a port of this machine."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from jr2_runtime.orchestrator.api import build_app
from jr2_runtime.serving import Server, listen
from tests.waiting import LIMIT


@contextlib.asynccontextmanager
async def serving(bench: Any) -> AsyncIterator[int]:
    """Serve the bench; give the port."""
    listener = listen("127.0.0.1", 0)
    server = Server(build_app(bench.services), bench.feeds.close_all)
    task = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        server.handle_exit(15)
        async with asyncio.timeout(LIMIT):
            await task
