"""The loop of an inline program is closed, whatever the engine does in the last moment."""

from __future__ import annotations

import asyncio

import pytest

from jr2_infra.engine import automation


@pytest.mark.parametrize("stops", [0, 1])
def test_a_loop_that_is_told_to_stop_while_it_is_closed_is_closed_all_the_same(stops: int) -> None:
    """The engine is gone in the moment in which its program ends: `cut_off` comes too late."""
    loop = asyncio.new_event_loop()
    ended: list[bool] = []

    async def wait_for_the_engine() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    waiting = loop.create_task(wait_for_the_engine())
    loop.call_soon(loop.stop)
    loop.run_forever()
    for _ in range(stops):
        loop.call_soon_threadsafe(loop.stop)

    automation._close(loop)

    assert loop.is_closed()
    assert waiting.cancelled()
    assert ended == [True]
