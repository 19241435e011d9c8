"""Who watches which run: frames go to those that are attached, and every feed ends once.

A feed is level-triggered: a status frame is the whole status, so a watcher that attaches late, or
again, needs no history. A watcher that does not keep up is let go; it attaches again.

Source: spec/runtime.md §1.5.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final, Literal

LONGEST_QUEUE: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One event of a feed; `data` is JSON text."""

    event: Literal["status", "emit", "closed"]
    data: str
    seq: int = 0
    """The transition that it tells of."""
    last: bool = False
    """The feed ends after this frame."""


CLOSED: Final = Frame(event="closed", data="{}", last=True)


class Feed:
    """One watcher of one run; `close` when it is gone, whatever the reason."""

    def __init__(self, feeds: Feeds, run: str) -> None:
        self._feeds = feeds
        self._run = run
        self._frames: asyncio.Queue[Frame] = asyncio.Queue()

    async def next(self) -> Frame:
        """Return the next frame; nothing follows one that is the last."""
        return await self._frames.get()

    def put(self, frame: Frame) -> None:
        """Queue a frame; a watcher that is too far behind gets `closed` and nothing more."""
        if self._frames.qsize() >= LONGEST_QUEUE:
            self.close()
            frame = CLOSED
        self._frames.put_nowait(frame)

    def close(self) -> None:
        """Let go of the watcher; a second call does nothing."""
        self._feeds.forget(self._run, self)


class Feeds:
    """All watchers."""

    def __init__(self) -> None:
        self._feeds: dict[str, set[Feed]] = {}
        self._closed = False

    def attach(self, run: str) -> Feed:
        """Watch a run from now on."""
        feed = Feed(self, run)
        if self._closed:
            feed.put(CLOSED)
        else:
            self._feeds.setdefault(run, set()).add(feed)
        return feed

    def is_watched(self, run: str) -> bool:
        """Whether a frame about the run has a reader."""
        return run in self._feeds

    def publish(self, run: str, frame: Frame) -> None:
        """Give a frame to everyone who watches the run."""
        for feed in list(self._feeds.get(run, ())):
            feed.put(frame)

    def forget(self, run: str, feed: Feed) -> None:
        """Take one watcher off the list."""
        watching = self._feeds.get(run)
        if watching is not None:
            watching.discard(feed)
            if not watching:
                del self._feeds[run]

    def close_all(self) -> None:
        """Tell every watcher that the Orchestrator stops; later ones are told at once."""
        self._closed = True
        for watching in list(self._feeds.values()):
            for feed in list(watching):
                feed.put(CLOSED)
        self._feeds.clear()

    def __len__(self) -> int:
        return sum(len(watching) for watching in self._feeds.values())
