"""One connection to one Assembly process: requests out, replies in, each with its number.

A link ends once, for one reason, and then fails whatever still waits on it. It never comes back:
`process` opens another.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from jr2 import frames, host_wire

OPEN_DEADLINE: Final = 10.0
"""Seconds in which the supervisor must have started the process."""
_read_reply: Final = TypeAdapter[Any](host_wire.Reply).validator.validate_json
_PLAIN: Final = re.compile(
    rb'\{"kind":"stepped","id":([1-9][0-9]{0,17}),"view":(0|[1-9][0-9]{0,8}),'
    rb'"commands":\[\],"receipt":null\}'
)
"""The reply to most steps, as the Assembly process writes it; any other text is read as JSON."""
_PIECE: Final = 256 * 2**10
"""How many bytes are read at once."""
_CREDENTIALS: Final = struct.Struct("3i")

Answer = tuple[
    host_wire.Loaded
    | host_wire.Stepped
    | host_wire.Missing
    | host_wire.Refused
    | host_wire.TaskReturned
    | host_wire.TaskRaised
    | host_wire.Pong
    | host_wire.Broken,
    bytes,
]


@lru_cache(maxsize=1024)
def _plain(view: int) -> host_wire.Stepped:
    """Return what such a reply says; its number is that of whoever asked."""
    return host_wire.Stepped(id=0, view=view, commands=[])


class AssemblyAway(Exception):
    """The worker is not there, or it does not have the Assembly."""


class LinkLost(Exception):
    """The process ended, or it was ended, before it answered.

    Args:
        reason: a clause, such as `the Assembly process ended`.
        by_us: the Orchestrator ended it, and blames none of those that wait for it.
        blocked: for how many seconds its loop had been silent, when it was ended for that.
    """

    def __init__(self, reason: str, *, by_us: bool, blocked: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.by_us = by_us
        self.blocked = blocked


class Replies:
    """The replies to requests that were sent together, in groups as they come.

    Replies that came in one piece are one group, so what is done for a group costs little for each.
    """

    def __init__(self, first: int) -> None:
        self._first = first
        self._come: list[tuple[int, Answer | LinkLost]] = []
        self._some: asyncio.Future[None] | None = None

    def put(self, number: int, answer: Answer | LinkLost) -> None:
        """Take the reply to one request, or why there is none."""
        self._come.append((number - self._first, answer))
        if self._some is not None and not self._some.done():
            self._some.set_result(None)

    async def next(self) -> list[tuple[int, Answer | LinkLost]]:
        """Return the next group: for each the place of its request among those that were sent."""
        if not self._come:
            self._some = asyncio.get_running_loop().create_future()
            await self._some
        come, self._come = self._come, []
        return come


class Link(asyncio.BufferedProtocol):
    """A connection whose process runs one Assembly; `serve` says why it ended.

    Replies are handed out in the turn of the loop in which they are read, for each further turn
    costs an event that is alone a good part of what it costs in all.
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._splitter = frames.Splitter()
        # A new buffer of this length for each piece would be three calls of the kernel.
        self._buffer = memoryview(bytearray(_PIECE))
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._waiting: dict[int, asyncio.Future[Answer] | Replies] = {}
        self._last = 0
        self._silent_since = 0.0
        self._lost: LinkLost | None = None

    @property
    def lost(self) -> LinkLost | None:
        """Why the link ended; `None` while it is open."""
        return self._lost

    @property
    def owes(self) -> bool:
        """Whether a request is not answered."""
        return bool(self._waiting)

    @property
    def silent_since(self) -> float:
        """Since when no reply has come though one is owed, by the loop's clock."""
        return self._silent_since

    async def serve(self) -> LinkLost:
        """Wait for the end of the link; return why it ended. Who is cancelled ends it."""
        try:
            await self._ended
        finally:
            self.end("the Orchestrator let go of the Assembly process", by_us=True)
        assert self._lost is not None
        return self._lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next piece goes."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Hand each reply that is complete now to whoever asked for it."""
        if self._lost is not None:
            return
        self._silent_since = self._loop.time()
        try:
            for header, body in self._splitter.feed(self._buffer[:nbytes]):
                plain = _PLAIN.fullmatch(header)
                if plain is None:
                    reply = _read_reply(header)
                    number = reply.id
                else:
                    reply = _plain(int(plain[2]))
                    number = int(plain[1])
                if reply.kind == "stepped" and reply.view > len(body):
                    raise frames.FrameError("a reply says that more is shown than it carries")
                waiting = self._waiting.pop(number, None)
                if isinstance(waiting, Replies):
                    waiting.put(number, (reply, body))
                elif waiting is not None and not waiting.done():
                    waiting.set_result((reply, body))
        except (frames.FrameError, ValidationError, RecursionError):
            self.end("the Assembly process sent something that is no reply", by_us=False)

    def connection_lost(self, reason: Exception | None) -> None:
        """Fail what waits: the process has closed its end, or it is gone."""
        self.end("the Assembly process ended", by_us=False)

    async def ask(self, request: dict[str, Any], body: bytes = b"") -> Answer:
        """Send a request and return the reply to it; who is cancelled meanwhile drops the reply.

        Args:
            request: the fields of `host_wire.Request` but for `id`, as JSON data.
            body: the frame's body.

        Raises:
            LinkLost: the link ended first.
            frames.FrameError: the request is longer than a frame may be; nothing was sent.
        """
        if self._lost is not None:
            raise self._lost
        self._last += 1
        number = self._last
        frame = frames.encode({"id": number, **request}, body)
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._owe(number, future)
        try:
            self._send(frame)
            return await future
        finally:
            self._waiting.pop(number, None)

    def ask_all(self, requests: Sequence[tuple[str, bytes]]) -> Replies:
        """Send requests together; the replies come as they are made.

        Args:
            requests: for each the fields of `host_wire.Request` but for `id`, as the text of a JSON
                object without its first brace, and the frame's body. None is longer than a frame
                may be.
        """
        replies = Replies(self._last + 1)
        kept: list[bytes] = []
        for text, body in requests:
            self._last += 1
            if self._lost is not None:
                replies.put(self._last, self._lost)
                continue
            kept.append(frames.frame(f'{{"id":{self._last},{text}'.encode(), body))
            self._owe(self._last, replies)
        if kept:
            self._send(b"".join(kept))
        return replies

    def _owe(self, number: int, waiting: asyncio.Future[Answer] | Replies) -> None:
        if not self._waiting:
            self._silent_since = self._loop.time()
        self._waiting[number] = waiting

    def tell(self, request: dict[str, Any]) -> None:
        """Send a request that has no reply of its own."""
        if self._lost is None:
            self._last += 1
            self._send(frames.encode({"id": self._last, **request}))

    def _send(self, data: bytes) -> None:
        assert self._transport is not None  # a link is handed on once it is connected
        self._transport.write(data)

    def end(self, reason: str, *, by_us: bool, blocked: float | None = None) -> None:
        """Close the link; the supervisor kills the process when it sees that. Only once."""
        if self._lost is not None:
            return
        self._lost = LinkLost(reason, by_us=by_us, blocked=blocked)
        if self._transport is not None:
            self._transport.abort()
        if not self._ended.done():
            self._ended.set_result(None)
        for number, waiting in self._waiting.items():
            if isinstance(waiting, Replies):
                waiting.put(number, self._lost)
            elif not waiting.done():
                waiting.set_exception(self._lost)
                waiting.exception()  # whoever asked may be gone already
        self._waiting.clear()


async def open_link(path: str, worker_uid: int, assembly: str) -> Link:
    """Have the supervisor start the process of an Assembly and return the link to it.

    Args:
        path: the supervisor's socket.
        worker_uid: the only user id that may listen there.
        assembly: 64 hex digits.

    Raises:
        AssemblyAway: nobody listens, somebody else does, or there is no such Assembly.
    """
    loop = asyncio.get_running_loop()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.setblocking(False)
    opened = False
    try:
        try:
            async with asyncio.timeout(OPEN_DEADLINE):
                await loop.sock_connect(connection, path)
        except (OSError, TimeoutError) as failed:
            raise AssemblyAway(f"the worker is not there: {failed or 'no answer'}") from failed
        packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        uid = _CREDENTIALS.unpack(packed)[1]
        if uid != worker_uid:
            raise AssemblyAway(f"the worker's socket belongs to user {uid}, not {worker_uid}")
        async with asyncio.timeout(OPEN_DEADLINE):
            await loop.sock_sendall(connection, frames.encode({"open": assembly}))
            said = await _first_frame(connection)
        if said is None:
            raise AssemblyAway("the worker closed the connection")
        if said != {"ok": True}:
            raise AssemblyAway(f"the worker says: {str(said.get('error'))[:200]}")
        _, link = await loop.create_unix_connection(Link, sock=connection)
        opened = True
    except (OSError, TimeoutError, frames.FrameError) as failed:
        raise AssemblyAway(f"the worker does not answer: {failed or 'no answer'}") from failed
    finally:
        if not opened:
            connection.close()
    return link


async def _first_frame(connection: socket.socket) -> dict[str, Any] | None:
    """Return the header of the supervisor's answer; `None` when it hung up.

    Behind it nothing comes by itself: the process answers what it is asked.

    Raises:
        frames.FrameError: it is no frame with an object, or not the only one.
    """
    loop = asyncio.get_running_loop()
    splitter = frames.Splitter()
    while True:
        data = await loop.sock_recv(connection, _PIECE)
        found = splitter.feed(data)
        if found:
            if len(found) > 1 or splitter.within:
                raise frames.FrameError("the worker sent more than its answer")
            return frames.header(found[0][0])
        if not data:
            if splitter.within:
                raise frames.FrameError("the peer closed inside a frame")
            return None
