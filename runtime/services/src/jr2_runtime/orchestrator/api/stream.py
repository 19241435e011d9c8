"""A feed as server-sent events.

A silent feed writes a comment every 15 s. The feed is let go exactly once, however it ends: by its
last frame, by a run that had settled already, by a client that is gone, or by the shutdown.

Source: spec/runtime.md §1.5.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..feeds import Feed, Frame

COMMENT_AFTER: Final = 15.0
PIECE: Final = 16 * 2**10
"""Characters of a frame that are sent at once, so that what a slow client does not take is little."""
RETRY_MS: Final = 2000
"""How long a watcher of a Workflow waits before it attaches again."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The first frame of a feed, and up to which transition it tells of each run.

    The watcher was attached before this was read, so what came between is in the frame already,
    and is not sent again.
    """

    frame: Frame
    seqs: Mapping[str, int]

    @classmethod
    def of(cls, frame: Frame) -> Opening:
        """Return the opening of a feed of one run."""
        return cls(frame, {frame.run: frame.seq})


def encode(frame: Frame) -> Iterator[bytes]:
    """Yield a frame as it goes over the wire, in pieces; its data is one line of JSON."""
    retry = f"retry: {RETRY_MS}\n" if frame.event == "runs" else ""
    text = frame.data[:PIECE]
    head, tail = f"{retry}event: {frame.event}\ndata: ", "\n\n"
    for at in range(PIECE, len(frame.data), PIECE):
        yield (head + text).encode()
        head, text = "", frame.data[at : at + PIECE]
    yield (head + text + tail).encode()


async def frames(
    first: Iterator[bytes], seqs: Mapping[str, int], feed: Feed, comment_after: float
) -> AsyncIterator[bytes]:
    """Yield a first frame and what follows it, piece by piece, until the last one.

    Args:
        first: the pieces of the first frame, which goes with them: nobody holds it for as long as
            the feed is open.
        seqs: up to which transition it tells of each run.
        feed: what follows; nothing, when the run has settled.
        comment_after: seconds of silence after which a comment follows.
    """
    for piece in first:
        yield piece
    last = feed.is_over
    while not last:
        try:
            async with asyncio.timeout(comment_after):
                frame = await feed.next()
        except TimeoutError:
            yield b":\n\n"
            continue
        last = frame.last
        if frame.seq > seqs.get(frame.run, 0) or not frame.run:
            pieces = encode(frame)
            del frame
            for piece in pieces:
                yield piece


class EventStream(Response):
    """The answer of a feed's route."""

    media_type = "text/event-stream"

    def __init__(
        self, opening: Opening, feed: Feed, *, comment_after: float = COMMENT_AFTER
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._first = encode(opening.frame)
        self._seqs = opening.seqs
        self._feed = feed
        self._comment_after = comment_after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the feed or the client ends; the first of the two ends both."""
        try:
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(self._send(send))
                watching = group.create_task(_gone(receive))
                sending.add_done_callback(_cancels(watching))
                watching.add_done_callback(_cancels(sending))
        finally:
            self._feed.close()

    async def _send(self, send: Send) -> None:
        with contextlib.suppress(OSError):  # the client is gone
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            async for chunk in frames(self._first, self._seqs, self._feed, self._comment_after):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _cancels(other: asyncio.Task[None]) -> Callable[[asyncio.Task[None]], object]:
    return lambda _: other.cancel()
