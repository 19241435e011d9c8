"""What is under way of requests fits the memory: bodies are counted until they are answered."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from fastapi import Request

from jr2_runtime.orchestrator.api import build_app
from jr2_runtime.orchestrator.api.bodies import ALWAYS, Bodies
from jr2_runtime.orchestrator.api.errors import ApiError

pytestmark = pytest.mark.anyio

KIB = 1024


def request(*chunks: bytes, ends: bool = True) -> Request:
    """A request whose body comes in these pieces, and then ends or hangs."""
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]

    async def receive() -> Any:
        if messages:
            return messages.pop(0)
        if not ends:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": b"", "more_body": False}

    return Request({"type": "http", "method": "POST", "path": "/", "headers": []}, receive)


async def code(bodies: Bodies, *chunks: bytes, ends: bool = True) -> int:
    """Return what a body is answered; 200 when it is taken."""
    try:
        async with bodies.of(request(*chunks, ends=ends)) as body:
            assert body == b"".join(chunks)
    except ApiError as refused:
        return refused.code
    return 200


async def test_a_body_counts_until_it_is_answered() -> None:
    bodies = Bodies(100 * KIB)
    large = b"x" * 60 * KIB
    async with bodies.of(request(large)):
        assert await code(bodies, large) == 503
        assert await code(bodies, b"x" * 40 * KIB) == 200
        # Its pieces count one by one, and none of them stays counted.
        assert await code(bodies, *[b"x" * KIB] * 41) == 503
        async with bodies.of(request(b"x" * 40 * KIB)):
            # A run can be cancelled however much is under way.
            assert await code(bodies, b"x" * ALWAYS) == 200
            assert await code(bodies, b"x" * (ALWAYS + 1)) == 503
    assert await code(bodies, large) == 200
    assert await code(bodies, b"x" * 100 * KIB) == 200
    assert await code(bodies, b"x" * 101 * KIB) == 503


async def test_a_body_that_does_not_come_is_408_and_counts_no_more() -> None:
    bodies = Bodies(100 * KIB, deadline=0.5)
    assert await code(bodies, b"x" * 90 * KIB, ends=False) == 408
    assert await code(bodies, b"x" * 100 * KIB) == 200


async def test_events_that_wait_are_bounded_by_their_bytes(bench: Any) -> None:
    """The worker is silent, so each event waits: what is too much is told to come back."""
    runs = [await bench.start("gate") for _ in range(5)]
    held = asyncio.Event()
    serve = bench.worker._handle

    def silent(asked: Any, body: bytes, writer: Any) -> None:
        if asked["op"] == "step" and not held.is_set():
            asyncio.get_running_loop().call_later(0.05, silent, asked, body, writer)
            return
        serve(asked, body, writer)

    bench.worker._handle = silent
    app = build_app(replace(bench.services, bodies=Bodies(250 * KIB)))
    bench.client._transport.app = app
    body = {"type": "go", "text": "x" * 100 * KIB}
    asking = [
        asyncio.ensure_future(bench.post(f"/runs/{run}/gates/review/events", body)) for run in runs
    ]
    done, _ = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
    assert {task.result().status_code for task in done} == {503}
    assert all(task.result().headers["Retry-After"] == "1" for task in done)
    cancelled = await bench.post(f"/runs/{runs[0]}/events", {"type": "CANCEL"})
    assert cancelled.status_code == 200
    held.set()
    codes = sorted([task.result().status_code for task in (await asyncio.wait(asking))[0]])
    assert codes == [200, 404, 503, 503, 503]
    # What was answered counts no more.
    again = await bench.post(f"/runs/{runs[4]}/gates/review/events", body)
    assert again.status_code == 200
