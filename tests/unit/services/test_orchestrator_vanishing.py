"""A thousand watchers that vanish leave nothing: no subscription, no task, no file descriptor.

Real sockets to the real server: a client's end is what the operating system makes of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from typing import Any

import pytest

from tests.unit.services.listening import serving

pytestmark = pytest.mark.anyio

CLIENTS = 1_000
AT_ONCE = 125


async def vanish(port: int, path: str, number: int) -> None:
    """Attach to a feed, read its first frame, and be gone, in one of three ways."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer instance-token\r\n\r\n"
    writer.write(head.encode())
    if number % 3:
        await reader.readuntil(b"\n\n")
    if number % 2:
        # A reset, as when the client's machine drops the connection.
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    else:
        writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def test_a_thousand_clients_that_vanish_leave_nothing(bench: Any) -> None:
    run = await bench.start("gate")
    paths = ("/workflows/gate/events", f"/workflows/gate/runs/{run}/events", f"/runs/{run}/events")
    async with serving(bench) as port:
        await vanish(port, paths[0], 1)  # what is made on first use is not counted
        await bench.eventually(lambda: len(bench.feeds) == 0)
        tasks, descriptors = len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))
        for first in range(0, CLIENTS, AT_ONCE):
            await asyncio.gather(
                *(vanish(port, paths[n % 3], n) for n in range(first, first + AT_ONCE))
            )
        await bench.eventually(lambda: len(bench.feeds) == 0)
        await bench.eventually(lambda: len(asyncio.all_tasks()) <= tasks)
        await bench.eventually(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)
        # The run is there, and so is its feed.
        assert (await bench.status(run))["status"] == "active"
