"""Requests over HTTP from as many connections as are asked for, and what each took.

The client is a few lines on sockets, for a client library costs more than the server that it is to
measure; the same client loads both sides.

At a given rate the requests are spread evenly over the time, also those of different connections: were
all connections to send at once, a request would wait for those of the same burst, and what was
measured would be the burst. A request that has to wait for the answer before it on its connection
counts from when it was to be sent.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

EMPTY_PORT_LINE = "port "
_LEAD = 0.05
"""Seconds from the last connection to the first request."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a server did under load."""

    rate: float
    """Answers of each second."""
    p99: float
    """Milliseconds in which 99 of 100 requests were answered."""


class _Client(asyncio.Protocol):
    """One connection that sends its requests one after another.

    Args:
        requests: whole requests as bytes.
        took: gets the seconds of each answer.
        every: seconds from one request to the next; 0: each follows the answer before it.
        done: is told of the last answer.
    """

    def __init__(
        self,
        requests: Sequence[bytes],
        took: list[float],
        every: float,
        done: asyncio.Future[None],
    ) -> None:
        self._requests = iter(requests)
        self._took = took
        self._due = 0.0
        self._every = every
        self._done = done
        self._data = b""
        self._sent = 0.0
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def begin(self, first: float) -> None:
        """Send the first request at this moment by the loop's clock."""
        self._due = first
        self._loop.call_at(first, self._send)

    def _send(self, since: float | None = None) -> None:
        assert self._transport is not None
        request = next(self._requests, None)
        if request is None:
            self._done.set_result(None)
            self._transport.close()
            return
        self._sent = time.perf_counter() if since is None else since
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, found, body = self._data.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        if len(body) < length:
            return
        if not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            self._done.set_exception(AssertionError(self._data.decode()))
            return
        self._data = b""
        now = time.perf_counter()
        self._took.append(now - self._sent)
        if not self._every:
            self._send()
            return
        self._due += self._every
        late = self._loop.time() - self._due
        if late < 0:
            self._loop.call_at(self._due, self._send)
        else:
            self._send(now - late)

    def connection_lost(self, reason: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(ConnectionError("the server hung up"))


async def load(port: int, requests: Sequence[Sequence[bytes]], rate: float | None = None) -> Load:
    """Send requests, each list over a connection of its own.

    Args:
        port: of the server on this machine.
        requests: whole requests as bytes, for each connection in their order.
        rate: requests of each second over all connections; `None`: as fast as they are answered.
    """
    loop = asyncio.get_running_loop()
    took: list[float] = []
    apart = 1 / rate if rate else 0.0
    ends, clients = [], []
    for each in requests:
        done: asyncio.Future[None] = loop.create_future()
        ends.append(done)
        client = _Client(each, took, len(requests) * apart, done)
        clients.append(client)
        await loop.create_connection(lambda client=client: client, "127.0.0.1", port)  # type: ignore[misc]
    # All are there before the first one sends, however long that took.
    first = loop.time() + _LEAD
    for place, client in enumerate(clients):
        client.begin(first + place * apart)
    await asyncio.gather(*ends)
    whole = loop.time() - first
    took.sort()
    return Load(rate=len(took) / whole, p99=took[int(len(took) * 0.99)] * 1000)


def request(port: int, path: str, body: bytes, *headers: str) -> bytes:
    """Return one POST as bytes."""
    lines = [
        f"POST {path} HTTP/1.1",
        f"host: 127.0.0.1:{port}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def serve_empty() -> None:
    """Serve one route that does nothing, under the server of the Orchestrator; print its port."""
    from fastapi import FastAPI

    from jr2_runtime.serving import Server, listen

    app = FastAPI()

    @app.post("/runs/{run}/gates/{gate}/events")
    async def nothing(run: str, gate: str, event: dict[str, object]) -> dict[str, bool]:
        return {"ok": True}

    listener = listen("127.0.0.1", 0)
    print(f"{EMPTY_PORT_LINE}{listener.getsockname()[1]}", flush=True)
    asyncio.run(Server(app, lambda: None).serve(sockets=[listener]))


if __name__ == "__main__" and sys.argv[1:] == ["empty"]:
    serve_empty()
