"""The three feeds: what each shows, how it keeps alive, and that each ending lets it go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from jr2_runtime.orchestrator import feeds as feeds_module
from jr2_runtime.orchestrator.api.stream import PIECE, encode, frames
from jr2_runtime.orchestrator.feeds import (
    CLOSED,
    LARGEST_QUEUE,
    LONGEST_QUEUE,
    Feeds,
    Frame,
    TooManyFeeds,
    Topic,
)
from tests.waiting import LIMIT

pytestmark = pytest.mark.anyio


@dataclass
class Watcher:
    """A client of a feed, at the ASGI door."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    text: str = ""
    ended: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def frames(self) -> list[tuple[str, Any]]:
        found = []
        for block in self.text.split("\n\n"):
            lines = block.removeprefix("retry: 2000\n").split("\n")
            if lines[0].startswith("event: "):
                found.append((lines[0][7:], json.loads(lines[1][6:])))
        return found

    async def until(self, text: str) -> None:
        async with asyncio.timeout(LIMIT):
            while text not in self.text:
                self.changed.clear()
                await self.changed.wait()

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {k.decode(): v.decode() for k, v in message["headers"]}
        else:
            self.text += message["body"].decode()
            self.ended = not message.get("more_body", False)
        self.changed.set()

    async def receive(self) -> Any:
        await self.gone.wait()
        return {"type": "http.disconnect"}


@asynccontextmanager
async def watching(
    bench: Any, run: str, path: str | None = None
) -> AsyncIterator[tuple[Watcher, asyncio.Task[None]]]:
    """Watch a run with the Instance token, or another path with none."""
    watcher = Watcher()
    headers = [(b"host", b"localhost")]
    headers += [] if path else [(b"authorization", b"Bearer instance-token")]
    path = path or f"/runs/{run}/events"
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "http_version": "1.1",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("client", 1),
    }
    app = bench.client._transport.app
    task = asyncio.ensure_future(app(scope, watcher.receive, watcher.send))
    try:
        yield watcher, task
    finally:
        watcher.gone.set()
        async with asyncio.timeout(LIMIT):
            await asyncio.gather(task, return_exceptions=True)


async def ended(task: asyncio.Task[None]) -> None:
    async with asyncio.timeout(LIMIT):
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
    feed = Feeds().attach(Topic("workflow", "w"))
    feed.put(Frame(event="emit", data="1", run="r", seq=4))
    feed.put(Frame(event="status", data="2", run="r", seq=4))
    feed.put(Frame(event="status", data="3", run="r", seq=5))
    feed.put(Frame(event="status", data="4", run="new", seq=1))
    feed.put(CLOSED)
    first = encode(Frame(event="runs", data="[]"))
    shown = [each async for each in frames(first, {"r": 4}, feed, 5)]
    assert shown == [
        b"retry: 2000\nevent: runs\ndata: []\n\n",
        b"event: status\ndata: 3\n\n",
        b"event: status\ndata: 4\n\n",
        b"event: closed\ndata: {}\n\n",
    ]


def of(length: int) -> Frame:
    return Frame(event="emit", data="x" * length)


@pytest.mark.parametrize(
    ("frames", "kept"),
    [
        ([of(2)] * (LONGEST_QUEUE + 10), LONGEST_QUEUE),
        ([of(LARGEST_QUEUE // 2)] * 5, 2),
        # One frame that is larger than all that may wait is no reason to end.
        ([of(LARGEST_QUEUE + 1)], 1),
    ],
)
async def test_a_watcher_that_does_not_read_is_let_go(frames: list[Frame], kept: int) -> None:
    feeds, topic = Feeds(), Topic("run", "r")
    feed = feeds.attach(topic)
    for frame in frames:
        feeds.publish(topic, frame)
    if kept < len(frames):
        # What waited is dropped: it attaches again, and is told how things are then.
        assert await feed.next() == CLOSED
        assert len(feeds) == 0
    else:
        assert [await feed.next() for _ in range(kept)] == frames
        assert len(feeds) == 1
    feed.close()
    assert feeds.held == 0


async def test_what_waits_for_all_watchers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds_module, "MOST_BYTES", 1000)
    feeds, topics = Feeds(), [Topic("run", name) for name in "abc"]
    watchers = [feeds.attach(topic) for topic in topics]
    watchers[0].opens_with(of(400))
    with pytest.raises(TooManyFeeds):
        watchers[1].opens_with(of(601))
    feeds.publish(topics[1], of(500))
    feeds.publish(topics[2], of(200))  # it does not fit beside the others
    assert feeds.held == 900 + len(CLOSED.data)
    assert (len(feeds), await watchers[2].next()) == (2, CLOSED)
    feeds.publish(topics[0], of(98))
    assert feeds.held == 1000
    # Who has taken the next one has sent the one before.
    assert await watchers[0].next() == of(98)
    assert feeds.held == 600
    for watcher in watchers:
        watcher.close()
    assert feeds.held == 0


async def test_a_large_frame_is_sent_in_pieces_that_are_the_frame() -> None:
    for length in (0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE):
        data = json.dumps("é" * length, ensure_ascii=False)
        pieces = list(encode(Frame(event="runs", data=data)))
        assert b"".join(pieces) == f"retry: 2000\nevent: runs\ndata: {data}\n\n".encode()
        assert max(map(len, pieces)) <= 2 * PIECE + 40
        assert len(pieces) == max(1, -(-len(data) // PIECE))


async def test_no_more_watchers_are_taken_than_there_may_be(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await bench.start("gate")
    monkeypatch.setattr(feeds_module, "MOST_FEEDS", 1)
    async with watching(bench, run) as (watcher, _):
        await watcher.until("status")
        async with watching(bench, run) as (further, task):
            await ended(task)
        assert (further.status, further.headers["retry-after"]) == (503, "1")
    async with watching(bench, run) as (later, _):
        await later.until("status")
    assert later.status == 200


async def test_the_feed_of_a_workflow_shows_its_live_runs_and_then_each_change(bench: Any) -> None:
    first = await bench.start("gate")
    await bench.start("task")
    async with watching(bench, "", "/workflows/gate/events") as (watcher, _):
        await watcher.until("event: runs")
        second = await bench.start("gate")
        await bench.post(f"/runs/{first}/gates/review/events", {"type": "go"})
        await bench.post(f"/runs/{second}/events", {"type": "CANCEL"})
        await watcher.until(f'event: gone\ndata: {{"runId":"{second}"}}')
    live = {"workflow": "gate", "status": "active", "value": "review", "children": []}
    assert watcher.text.startswith("retry: 2000\nevent: runs\n")
    assert watcher.frames == [
        ("runs", [{"runId": first, **live}]),
        ("status", {"runId": second, **live}),
        ("emit", {"runId": first, "type": "said"}),
        ("status", {"runId": first, **live, "status": "done", "value": "done"}),
        ("gone", {"runId": first}),
        ("status", {"runId": second, **live, "status": "cancelled"}),
        ("gone", {"runId": second}),
    ]
    assert "context only" not in watcher.text
    assert not watcher.ended
    assert len(bench.feeds) == 0


async def test_a_workflow_that_nobody_knows_is_an_empty_set(bench: Any) -> None:
    async with watching(bench, "", "/workflows/none/events") as (watcher, _):
        await watcher.until("\n\n:\n\n")
        bench.feeds.close_all()
        await watcher.until("closed")
    assert (watcher.status, watcher.frames) == (200, [("runs", []), ("closed", {})])


async def test_anybody_may_follow_a_live_run_and_sees_no_context_and_no_payload(
    bench: Any,
) -> None:
    run = await bench.start("gate")
    async with watching(bench, "", f"/workflows/gate/runs/{run}/events") as (watcher, task):
        await watcher.until("status")
        await bench.post(f"/runs/{run}/gates/review/events", {"type": "go", "n": "payload"})
        await ended(task)
    assert watcher.frames == [
        (
            "status",
            {
                "runId": run,
                "workflow": "gate",
                "status": "active",
                "value": "review",
                "children": [],
            },
        ),
        ("emit", {"runId": run, "type": "said"}),
        (
            "status",
            {"runId": run, "workflow": "gate", "status": "done", "value": "done", "children": []},
        ),
    ]
    assert watcher.ended
    for path in (
        f"/workflows/gate/runs/{run}/events",  # it has settled
        "/workflows/gate/runs/none/events",
        f"/workflows/task/runs/{await bench.start('gate')}/events",
    ):
        async with watching(bench, "", path) as (watcher, task):
            await ended(task)
        assert watcher.status == 404, path
    assert len(bench.feeds) == 0
