"""What the Orchestrator takes for a reply of an Assembly process, and what ends the link."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from jr2 import frames, host_wire
from jr2_runtime.orchestrator.host.link import Link, LinkLost

pytestmark = pytest.mark.anyio

PLAIN = b'{"kind":"stepped","id":%d,"view":2,"commands":[],"receipt":null}'


@contextlib.asynccontextmanager
async def linked() -> AsyncIterator[tuple[Link, socket.socket]]:
    """Yield a link and the other end of its connection."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    _, link = await asyncio.get_running_loop().create_unix_connection(Link, sock=ours)
    serving = asyncio.ensure_future(link.serve())
    try:
        yield link, theirs
    finally:
        link.end("over", by_us=True)
        await serving
        theirs.close()


@pytest.mark.parametrize(
    "header",
    [
        PLAIN % 1,
        b'{ "id": 1, "view": 2, "commands": [], "receipt": null, "kind": "stepped" }',
        b'{"kind":"stepped","id":1,"view":2,"commands":[]}',
    ],
    ids=["as it is written", "in another order", "without what may be left out"],
)
async def test_a_reply_says_the_same_however_it_is_written(header: bytes) -> None:
    async with linked() as (link, process):
        replies = link.ask_all([('"op":"step"}', b"")])
        process.sendall(frames.frame(header, b"{}body"))

        ((place, answer),) = await replies.next()

    assert place == 0
    assert not isinstance(answer, LinkLost)
    reply, body = answer
    assert isinstance(reply, host_wire.Stepped)
    assert (reply.view, reply.commands, reply.receipt, body) == (2, [], None, b"{}body")


async def test_replies_that_come_in_another_order_go_to_their_requests() -> None:
    async with linked() as (link, process):
        replies = link.ask_all([('"op":"step"}', b""), ('"op":"step"}', b"")])
        process.sendall(frames.frame(PLAIN % 2, b"{}b") + frames.frame(PLAIN % 1, b"{}a"))

        come = await replies.next()

    assert {place: answer[1] for place, answer in come if not isinstance(answer, LinkLost)} == {
        0: b"{}a",
        1: b"{}b",
    }


@pytest.mark.parametrize(
    ("header", "body"),
    [
        (PLAIN % 1, b"{"),
        (b'{"kind":"stepped","id":1,"view":-1,"commands":[],"receipt":null}', b"{}"),
        (b'{"kind":"stepped","id":01,"view":2,"commands":[],"receipt":null}', b"{}"),
        (b'{"kind":"stepped","id":1,"view":2,"commands":[],"receipt":null}x', b"{}"),
        (b"[]", b""),
    ],
    ids=["shows more than it has", "below zero", "no JSON", "more behind it", "no object"],
)
async def test_what_is_no_reply_ends_the_link(header: bytes, body: bytes) -> None:
    async with linked() as (link, process):
        replies = link.ask_all([('"op":"step"}', b"")])
        process.sendall(frames.frame(header, body))

        ((_, answer),) = await replies.next()

    assert isinstance(answer, LinkLost)
    assert answer.reason == "the Assembly process sent something that is no reply"
    assert not answer.by_us
