"""One connection to one Assembly process: requests out, replies in, each with its number.

A link ends once, for one reason, and then fails whatever still waits on it. It never comes back:
`process` opens another.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Sequence
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from jr2 import frames, host_wire

OPEN_DEADLINE: Final = 10.0
"""Seconds in which the supervisor must have started the process."""
_REPLY: Final[TypeAdapter[Any]] = TypeAdapter(host_wire.Reply)
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


class Link:
    """A connection whose process runs one Assembly; `serve` reads it until it ends."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._waiting: dict[int, asyncio.Future[Answer] | Replies] = {}
        self._last = 0
        self._kept: list[bytes] = []
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
        """Hand each reply to whoever asked for it; return why the link ended."""
        splitter = frames.Splitter()
        loop = asyncio.get_running_loop()
        try:
            while self._lost is None:
                data = await self._reader.read(_PIECE)
                if not data:
                    self.end("the Assembly process ended", by_us=False)
                    break
                self._silent_since = loop.time()
                for header, body in splitter.feed(data):
                    self._hand_out(_REPLY.validate_json(header), body)
        except (frames.FrameError, ValidationError, RecursionError):
            self.end("the Assembly process sent something that is no reply", by_us=False)
        except OSError:
            self.end("the Assembly process ended", by_us=False)
        finally:
            self.end("the Orchestrator let go of the Assembly process", by_us=True)
        assert self._lost is not None
        return self._lost

    def _hand_out(self, reply: Any, body: bytes) -> None:
        if isinstance(reply, host_wire.Stepped) and reply.view > len(body):
            raise frames.FrameError("a reply says that more is shown than it carries")
        waiting = self._waiting.pop(reply.id, None)
        if isinstance(waiting, Replies):
            waiting.put(reply.id, (reply, body))
        elif waiting is not None and not waiting.done():
            waiting.set_result((reply, body))

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
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
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
        for text, body in requests:
            self._last += 1
            if self._lost is not None:
                replies.put(self._last, self._lost)
                continue
            frame = frames.frame(f'{{"id":{self._last},{text}'.encode(), body)
            self._owe(self._last, replies)
            self._send(frame)
        return replies

    def _owe(self, number: int, waiting: asyncio.Future[Answer] | Replies) -> None:
        if not self._waiting:
            self._silent_since = asyncio.get_running_loop().time()
        self._waiting[number] = waiting

    def tell(self, request: dict[str, Any]) -> None:
        """Send a request that has no reply of its own."""
        if self._lost is None:
            self._last += 1
            self._send(frames.encode({"id": self._last, **request}))

    def _send(self, frame: bytes) -> None:
        """Have a frame go together with the others of this turn of the loop."""
        if not self._kept:
            asyncio.get_running_loop().call_soon(self._flush)
        self._kept.append(frame)

    def _flush(self) -> None:
        kept, self._kept = self._kept, []
        if self._lost is None:
            self._writer.write(b"".join(kept))

    def end(self, reason: str, *, by_us: bool, blocked: float | None = None) -> None:
        """Close the link; the supervisor kills the process when it sees that. Only once."""
        if self._lost is not None:
            return
        self._lost = LinkLost(reason, by_us=by_us, blocked=blocked)
        self._writer.transport.abort()
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
    try:
        async with asyncio.timeout(OPEN_DEADLINE):
            reader, writer = await asyncio.open_unix_connection(path)
    except (OSError, TimeoutError) as failed:
        raise AssemblyAway(f"the worker is not there: {failed or 'no answer'}") from failed
    opened = False
    try:
        connection: socket.socket = writer.get_extra_info("socket")
        packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        uid = _CREDENTIALS.unpack(packed)[1]
        if uid != worker_uid:
            raise AssemblyAway(f"the worker's socket belongs to user {uid}, not {worker_uid}")
        async with asyncio.timeout(OPEN_DEADLINE):
            writer.write(frames.encode({"open": assembly}))
            received = await frames.read(reader)
        if received is None:
            raise AssemblyAway("the worker closed the connection")
        if received[0] != {"ok": True}:
            raise AssemblyAway(f"the worker says: {str(received[0].get('error'))[:200]}")
        opened = True
    except (OSError, TimeoutError, frames.FrameError) as failed:
        raise AssemblyAway(f"the worker does not answer: {failed or 'no answer'}") from failed
    finally:
        if not opened:
            with contextlib.suppress(OSError):
                writer.transport.abort()
    return Link(reader, writer)
