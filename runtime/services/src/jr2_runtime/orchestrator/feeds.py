"""Who watches what: frames go to those that are attached, and every feed ends once.

There are three feeds: a run as the Instance token may see it, a run as anybody may see it, and the
live runs of a Workflow. A feed is level-triggered: a status frame is the whole status, so a watcher
that attaches late, or again, needs no history. A watcher that does not keep up is let go: what waits
for it is dropped, it gets `closed`, and it attaches again. The same happens to the one for whom a
frame would be too much beside what waits for all. So neither a slow client nor many of them make
the program grow without a bound.

Source: spec/runtime.md §1.5, ADR-0121.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final, Literal

LONGEST_QUEUE: Final = 256
"""Frames that may wait for one watcher."""
LARGEST_QUEUE: Final = 4 * 2**20
"""Bytes that may wait for one watcher, when more than one frame waits."""
MOST_BYTES: Final = 64 * 2**20
"""Bytes that may wait for all of them, with what is being sent to each."""
AT_ONCE: Final = 8
"""Watchers for whom the first frame is read at one time; the others wait."""
MOST_FEEDS: Final = 2_000
"""Watchers at one time; a further one is told to come back."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What a feed tells of.

    Args:
        kind: `run`, everything of one run; `observed`, what anybody may see of it; `workflow`,
            what anybody may see of the live runs of a Workflow.
        name: the run id, or the name of the Workflow.
    """

    kind: Literal["run", "observed", "workflow"]
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One event of a feed; `data` is JSON text."""

    event: Literal["runs", "status", "emit", "gone", "closed"]
    data: str
    run: str = ""
    """The run that it tells of; empty when it is not one."""
    seq: int = 0
    """The transition of that run that it tells of."""
    last: bool = False
    """The feed ends after this frame."""


CLOSED: Final = Frame(event="closed", data="{}", last=True)


class TooManyFeeds(Exception):
    """As many watchers are attached, or as much waits for them, as may."""


class Feed:
    """One watcher; `close` when it is gone, whatever the reason."""

    def __init__(self, feeds: Feeds, topic: Topic) -> None:
        self._feeds = feeds
        self._topic = topic
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        """Of the frames that wait."""
        self._sending = 0
        """Bytes of the one that was taken last."""
        self._some = asyncio.Event()
        self.is_over = False
        """Whether its first frame was the last one."""

    async def next(self) -> Frame:
        """Return the next frame, when the one before was sent; nothing follows the last one."""
        self._sending = self._count(-self._sending, 0)
        while not self._frames:
            self._some.clear()
            await self._some.wait()
        frame = self._frames.popleft()
        self._sending = len(frame.data)
        self._bytes -= self._sending
        return frame

    def opens_with(self, frame: Frame) -> None:
        """Count the frame that is sent before all others.

        Raises:
            TooManyFeeds: it is too much beside what waits for all watchers.
        """
        if self._feeds.held + len(frame.data) > MOST_BYTES:
            raise TooManyFeeds
        self._sending = self._count(len(frame.data), len(frame.data))
        self.is_over = frame.last

    def put(self, frame: Frame) -> None:
        """Queue a frame; a watcher that is too far behind gets `closed` and nothing more."""
        size = len(frame.data)
        if (
            len(self._frames) >= LONGEST_QUEUE
            or (self._frames and self._bytes + size > LARGEST_QUEUE)
            or (self._feeds.held + size > MOST_BYTES and not frame.last)
        ):
            self._feeds.forget(self._topic, self)
            self._drop()
            frame, size = CLOSED, len(CLOSED.data)
        self._frames.append(frame)
        self._bytes = self._count(size, self._bytes + size)
        self._some.set()

    def close(self) -> None:
        """Let go of the watcher; a second call does nothing."""
        self._feeds.forget(self._topic, self)
        self._drop()
        self._sending = self._count(-self._sending, 0)

    def _drop(self) -> None:
        self._frames.clear()
        self._bytes = self._count(-self._bytes, 0)

    def _count(self, change: int, now: int) -> int:
        """Count more or fewer bytes for all watchers; return what it is for this one now."""
        self._feeds.held += change
        return now


class Feeds:
    """All watchers."""

    def __init__(self) -> None:
        self._feeds: dict[Topic, set[Feed]] = {}
        self._attached = 0
        self._closed = False
        self.held = 0
        """Bytes that wait for the watchers, or are being sent to them."""
        self.opening = asyncio.Semaphore(AT_ONCE)
        """Held while the first frame of a watcher is read and is not counted yet."""

    def attach(self, topic: Topic) -> Feed:
        """Watch a topic from now on.

        Raises:
            TooManyFeeds: no more watchers are taken.
        """
        if self._attached >= MOST_FEEDS:
            raise TooManyFeeds
        feed = Feed(self, topic)
        if self._closed:
            feed.put(CLOSED)
        else:
            self._feeds.setdefault(topic, set()).add(feed)
            self._attached += 1
        return feed

    def is_watched(self, topic: Topic) -> bool:
        """Whether a frame about the topic has a reader."""
        return topic in self._feeds

    def publish(self, topic: Topic, frame: Frame) -> None:
        """Give a frame to everyone who watches the topic."""
        for feed in list(self._feeds.get(topic, ())):
            feed.put(frame)

    def forget(self, topic: Topic, feed: Feed) -> None:
        """Take one watcher off the list."""
        watching = self._feeds.get(topic)
        if watching is not None and feed in watching:
            watching.discard(feed)
            self._attached -= 1
            if not watching:
                del self._feeds[topic]

    def close_all(self) -> None:
        """Tell every watcher that the Orchestrator stops; later ones are told at once."""
        self._closed = True
        for watching in list(self._feeds.values()):
            for feed in list(watching):
                feed.put(CLOSED)
        self._feeds.clear()
        self._attached = 0

    def __len__(self) -> int:
        return self._attached

    @property
    def is_closed(self) -> bool:
        """Whether the Orchestrator stops."""
        return self._closed

    @property
    def is_empty(self) -> bool:
        """Whether nobody watches anything."""
        return not self._feeds
