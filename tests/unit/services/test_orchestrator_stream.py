"""A run's feed: what it replays, how it keeps alive, and that each of its endings lets it go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from jr2_runtime.orchestrator.feeds import LONGEST_QUEUE, Feeds, Frame

pytestmark = pytest.mark.anyio


@dataclass
class Watcher:
    """A client of a feed, at the ASGI door."""

    status: int = 0
    text: str = ""
    ended: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def frames(self) -> list[tuple[str, Any]]:
        found = []
        for block in self.text.split("\n\n"):
            if block.startswith("event: "):
                event, data = block.split("\n")
                found.append((event[7:], json.loads(data[6:])))
        return found

    async def until(self, text: str) -> None:
        async with asyncio.timeout(5):
            while text not in self.text:
                self.changed.clear()
                await self.changed.wait()

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.text += message["body"].decode()
            self.ended = not message.get("more_body", False)
        self.changed.set()

    async def receive(self) -> Any:
        await self.gone.wait()
        return {"type": "http.disconnect"}


@asynccontextmanager
async def watching(bench: Any, run: str) -> AsyncIterator[tuple[Watcher, asyncio.Task[None]]]:
    watcher = Watcher()
    scope = {
        "type": "http",
        "method": "GET",
        "path": f"/runs/{run}/events",
        "raw_path": f"/runs/{run}/events".encode(),
        "query_string": b"",
        "headers": [(b"authorization", b"Bearer instance-token")],
        "http_version": "1.1",
        "scheme": "http",
        "server": ("jr2", 80),
        "client": ("client", 1),
    }
    app = bench.client._transport.app
    task = asyncio.ensure_future(app(scope, watcher.receive, watcher.send))
    try:
        yield watcher, task
    finally:
        watcher.gone.set()
        async with asyncio.timeout(5):
            await asyncio.gather(task, return_exceptions=True)


async def ended(task: asyncio.Task[None]) -> None:
    async with asyncio.timeout(5):
        await task


async def test_a_live_run_is_replayed_then_followed_to_its_end(bench: Any) -> None:
    run = await bench.start("gate")
    async with watching(bench, run) as (watcher, task):
        await watcher.until('"active"')
        await bench.post(f"/runs/{run}/gates/review/events", {"type": "go"})
        await ended(task)
    assert watcher.status == 200
    assert [event for event, _ in watcher.frames] == ["status", "emit", "status"]
    assert [data["status"] for event, data in watcher.frames if event == "status"] == [
        "active",
        "done",
    ]
    assert watcher.frames[1][1] == {"n": 1, "type": "said"}
    assert watcher.frames[0][1]["context"]["secret"] == "context only"
    assert watcher.ended
    assert len(bench.feeds) == 0


async def test_a_settled_run_is_one_frame(bench: Any) -> None:
    run = await bench.start("gate")
    await bench.post(f"/runs/{run}/events", {"type": "CANCEL"})
    async with watching(bench, run) as (watcher, task):
        await ended(task)
    assert [(event, data["status"]) for event, data in watcher.frames] == [("status", "cancelled")]
    assert watcher.ended
    assert len(bench.feeds) == 0


async def test_a_cancelled_run_ends_its_feed(bench: Any) -> None:
    run = await bench.start("gate")
    async with watching(bench, run) as (watcher, task):
        await watcher.until("status")
        await bench.post(f"/runs/{run}/events", {"type": "CANCEL"})
        await ended(task)
    assert watcher.frames[-1][1]["status"] == "cancelled"
    assert len(bench.feeds) == 0


async def test_a_silent_feed_writes_comments(bench: Any) -> None:
    run = await bench.start("gate")
    async with watching(bench, run) as (watcher, _):
        await watcher.until("\n\n:\n\n:\n\n")
    assert [event for event, _ in watcher.frames] == ["status"]


async def test_a_client_that_goes_is_let_go(bench: Any) -> None:
    run = await bench.start("gate")
    async with watching(bench, run) as (watcher, task):
        await watcher.until("status")
        assert len(bench.feeds) == 1
        watcher.gone.set()
        await ended(task)
    assert len(bench.feeds) == 0


async def test_the_shutdown_tells_every_watcher(bench: Any) -> None:
    run = await bench.start("gate")
    async with watching(bench, run) as (watcher, task):
        await watcher.until("status")
        bench.feeds.close_all()
        await ended(task)
    assert watcher.frames[-1] == ("closed", {})
    async with watching(bench, run) as (late, task):
        await ended(task)
    assert [event for event, _ in late.frames] == ["status", "closed"]
    assert len(bench.feeds) == 0


async def test_an_unknown_run_is_404_and_holds_nothing(bench: Any) -> None:
    async with watching(bench, "none") as (watcher, task):
        await ended(task)
    assert watcher.status == 404
    assert len(bench.feeds) == 0


async def test_what_the_replay_shows_is_not_shown_again() -> None:
    from jr2_runtime.orchestrator.api.stream import frames

    feed = Feeds().attach("r")
    feed.put(Frame(event="emit", data="1", seq=4))
    feed.put(Frame(event="status", data="2", seq=4))
    feed.put(Frame(event="status", data="3", seq=5, last=True))
    shown = [each async for each in frames(Frame(event="status", data="0", seq=4), feed, 5)]
    assert shown == [b"event: status\ndata: 0\n\n", b"event: status\ndata: 3\n\n"]


async def test_a_watcher_that_does_not_read_is_let_go() -> None:
    feeds = Feeds()
    feed = feeds.attach("r")
    for number in range(LONGEST_QUEUE + 10):
        feeds.publish("r", Frame(event="emit", data="{}", seq=number))
    assert len(feeds) == 0
    frames = [await feed.next() for _ in range(LONGEST_QUEUE + 1)]
    assert frames[-1].last
    assert frames[-1].event == "closed"
