"""Connections that a sender holds for nothing end, and what is no HTTP gets the one error body."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from jr2_runtime.serving import Server, listen
from jr2_runtime.serving.connections import Connection
from tests.waiting import LIMIT

pytestmark = pytest.mark.anyio


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Read the body of a POST to `/read`; answer everything else at once."""
    while scope["path"] == "/read":
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        if not message.get("more_body"):
            break
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def serving(served: Any = app, *, idle: int | None = None) -> AsyncIterator[int]:
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    server = Server(served, lambda: None)
    if idle is not None:
        server.config.timeout_keep_alive = idle
    task = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        yield port
    finally:
        server.should_exit = True
        await task


async def said(port: int, *pieces: bytes) -> bytes:
    """Send pieces, then read until the program closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(LIMIT):
            return await reader.read()
    finally:
        writer.close()


def parts(answer: bytes) -> tuple[int, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.mark.parametrize(
    "request_", [b"\x16\x03\x01\x02\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET  /  x\r\n\r\n"]
)
async def test_what_is_no_http_gets_the_error_body_and_ends(request_: bytes) -> None:
    async with serving() as port:
        assert parts(await said(port, request_)) == (
            400,
            {"error": "the request is no valid HTTP"},
        )


async def test_a_head_that_does_not_come_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Connection, "head_seconds", 0.5)
    async with serving() as port:
        assert await said(port) == b""
        code, body = parts(await said(port, b"GET / HTTP/1.1\r\nHost: a\r\n"))
        assert (code, list(body)) == (408, ["error"])
        # The second request of a connection has its own time, also when the first was answered.
        answers = await said(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT")
        assert answers.startswith(b"HTTP/1.1 200")
        assert b"HTTP/1.1 408" in answers


async def test_a_byte_now_and_then_does_not_prolong_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "head_seconds", 1.0)
    answer = b""
    async with serving() as port, asyncio.timeout(LIMIT):
        while not answer:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            closed = asyncio.ensure_future(reader.read())
            sent = 0
            while not closed.done():
                writer.write(b"G")
                sent += 1
                await asyncio.wait({closed}, timeout=0.02)
            # A byte that meets the end of the connection resets it, and the answer goes with it.
            with contextlib.suppress(ConnectionResetError):
                answer = closed.result()
            writer.close()
    assert parts(answer)[0] == 408
    assert sent > 3


async def test_a_body_that_nobody_wants_ends_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Connection, "linger_seconds", 0.5)
    head = b"POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"
    async with serving() as port:
        assert (await said(port, head, b"x" * 1000)).endswith(b"\r\n\r\nok")
        # What is no body either, behind the answer: no second answer, and no error of ours.
        head = b"POST /refused HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert (await said(port, head, b"zz\r\n")).count(b"HTTP/1.1") == 1


async def test_the_end_of_an_unwanted_body_does_not_hold_its_connection_for_ever() -> None:
    async with serving(idle=1) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(LIMIT):
            for _ in range(2):
                writer.write(b"POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n")
                await reader.readuntil(b"ok")
                # The connection stays for another request, and then for as long as any other.
                writer.write(b"xx")
            assert await reader.read() == b""
        writer.close()


async def test_who_is_served_has_no_deadline_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("head_seconds", "linger_seconds"):
        monkeypatch.setattr(Connection, name, 0.5)
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(b"POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.readexactly(1), 1.0)
            writer.write(b"x")
            answer = await asyncio.wait_for(reader.readuntil(b"ok"), LIMIT)
            assert answer.startswith(b"HTTP/1.1 200")
            # Between two requests uvicorn's own time holds, which is longer.
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.readexactly(1), 1.0)
        writer.close()


async def test_a_connection_too_many_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "most", 2)
    async with serving() as port:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        # Both are there once the second has been answered.
        for reader, writer in held:
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await asyncio.wait_for(reader.readuntil(b"ok"), LIMIT)
        assert await said(port) == b""
        held[0][1].close()
        await held[0][1].wait_closed()

        async def again() -> bytes:
            return await said(port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")

        async with asyncio.timeout(LIMIT):
            while not (await again()).startswith(b"HTTP/1.1 200"):
                pass
        held[1][1].close()


def test_a_peer_that_has_gone_is_noticed() -> None:
    with listen("127.0.0.1", 0) as listener:
        client = socket.create_connection(listener.getsockname())
        taken, _ = listener.accept()
        with client, taken:
            assert taken.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60


async def test_a_peer_that_takes_nothing_of_its_answer_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Connection, "stall_seconds", 0.2)
    ended = asyncio.Event()

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await receive()  # the request, which has no body
        gone = asyncio.ensure_future(receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not gone.done():
            await send({"type": "http.response.body", "body": bytes(2**14), "more_body": True})
            await asyncio.sleep(0)
        assert gone.result()["type"] == "http.disconnect"
        ended.set()

    async with serving(endless) as port:
        with socket.create_connection(("127.0.0.1", port)) as peer:
            peer.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            async with asyncio.timeout(LIMIT):
                await ended.wait()


async def test_a_peer_that_takes_something_in_time_keeps_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size, found = 16 * 2**20, []
    made = Connection.connection_made

    def connection_made(self: Connection, transport: asyncio.Transport) -> None:
        made(self, transport)
        found.append(self)

    monkeypatch.setattr(Connection, "connection_made", connection_made)

    async def large(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", str(size).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": bytes(size)})

    async with serving(large) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**12)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        got = len(await reader.readexactly(2**12))
        (connection,) = found
        left = connection.transport.get_write_buffer_size()
        assert left > 2**20, "the kernel does not take all of it"
        # The time is over and some of it was taken: it has as much time again.
        while connection.transport.get_write_buffer_size() >= left:
            got += len(await reader.read(2**16))
        connection._look_at(left)
        assert not connection.transport.is_closing()
        # The time is over and nothing was taken.
        connection._look_at(0)
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(LIMIT):
                while await reader.read(2**16):
                    pass
        assert connection.transport.is_closing()
        assert got < size
        writer.close()


async def test_what_waits_in_all_connections_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    size = 8 * 2**20
    answered: asyncio.Queue[None] = asyncio.Queue()

    async def large(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", str(size).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": bytes(size)})
        answered.put_nowait(None)

    monkeypatch.setattr(Connection, "most_unsent", 20 * 2**20)
    async with serving(large) as port:
        peers = []
        for _ in range(6):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**12)
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            peers.append((reader, writer))
            async with asyncio.timeout(LIMIT):
                await answered.get()
        whole = []
        for reader, _ in peers:
            got = b""
            with contextlib.suppress(ConnectionError):
                await reader.readuntil(b"\r\n\r\n")
                while piece := await reader.read(2**16):
                    got += piece
                    if len(got) == size:
                        break
            whole.append(len(got) == size)
        # The first ones fit; one that came when there was no room was cut, and nobody else.
        assert whole[:2] == [True, True]
        assert False in whole
        for _, writer in peers:
            writer.close()


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What connections gave to the kernel, in the pieces in which they did."""
    found: list[bytes] = []
    made = Connection.connection_made

    def connection_made(self: Connection, transport: asyncio.Transport) -> None:
        write = transport.write

        def writing(data: bytes) -> None:
            found.append(bytes(data))
            write(data)

        monkeypatch.setattr(transport, "write", writing)
        made(self, transport)

    monkeypatch.setattr(Connection, "connection_made", connection_made)
    return found


async def test_an_answer_goes_in_one_piece(pieces: list[bytes]) -> None:
    """What is cut between two has no body, and a browser shows it as an empty page."""
    async with serving() as port:
        answer = await said(
            port,
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            b"HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        )

    first, second = [piece for piece in pieces if piece]
    assert first.startswith(b"HTTP/1.1 200")
    assert first.endswith(b"\r\n\r\nok")
    assert second.startswith(b"HTTP/1.1 200")
    assert second.endswith(b"\r\n\r\n")
    assert answer == first + second


async def test_a_head_whose_body_does_not_come_yet_goes_alone(pieces: list[bytes]) -> None:
    read, broken = asyncio.Event(), False

    async def late(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if broken:
            raise ValueError
        await read.wait()
        await send({"type": "http.response.body", "body": b"ok"})

    async with serving(late) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(LIMIT):
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            read.set()
            assert await reader.read() == b"ok"
        writer.close()
        assert [piece[-2:] for piece in pieces if piece] == [b"\r\n", b"ok"]

        # Where no body will come there is no answer at all, and that is what a sender sees.
        broken = True
        assert await said(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") == b""
