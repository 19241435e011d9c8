"""Many steps at once, one alone, and the runs that are remembered between two events."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import pytest

from jr2_runtime.orchestrator.engine.recent import Recent
from jr2_runtime.orchestrator.host.lanes import Lanes
from jr2_runtime.orchestrator.store import Run
from tests.waiting import LIMIT

pytestmark = pytest.mark.anyio
RUN = Run(
    id="r-0",
    instance_id="i",
    workflow="w",
    assembly="a" * 64,
    shape="0" * 12,
    status="live",
    reason=None,
    seq=1,
    view="{}",
    snapshot=b"x" * 1000,
)


class Count:
    """How many are in at once."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.now = self.most = 0
        self.beside_alone = 0
        self.is_alone = False

    async def shared(self) -> None:
        await self.lanes.enter()
        try:
            self.now += 1
            self.most = max(self.most, self.now)
            self.beside_alone += self.is_alone
            await asyncio.sleep(0)
            self.now -= 1
        finally:
            self.lanes.leave()

    async def alone(self) -> None:
        async with self.lanes.alone():
            self.beside_alone += self.now
            self.is_alone = True
            for _ in range(5):
                await asyncio.sleep(0)
            self.is_alone = False


async def test_so_many_are_in_together_and_no_more() -> None:
    count = Count(Lanes(3))
    await asyncio.gather(*(count.shared() for _ in range(20)))
    assert count.most == 3


async def test_who_is_alone_is_alone_and_the_others_come_after() -> None:
    count = Count(Lanes(3))
    await asyncio.gather(
        *(count.alone() if each % 4 == 1 else count.shared() for each in range(20))
    )
    assert count.beside_alone == 0
    assert count.most == 3


async def test_room_given_to_one_who_has_gone_is_given_on() -> None:
    lanes = Lanes(1)
    await lanes.enter()
    first, second = (asyncio.ensure_future(lanes.enter()) for _ in range(2))
    await asyncio.sleep(0)
    lanes.leave()  # wakes the first
    first.cancel()
    async with asyncio.timeout(LIMIT):
        await second


def test_recent_runs_are_bounded_and_settled_ones_are_not_kept() -> None:
    recent = Recent(most_bytes=5000)
    for number in range(4):
        recent.put(RUN._replace(id=f"r-{number}"))
    assert [recent.take(f"r-{number}") is not None for number in range(4)] == [
        False,
        False,
        True,
        True,
    ]
    assert recent.take("r-3") is None  # whoever took it has it
    recent.put(RUN._replace(status="done"))
    assert recent.take("r-0") is None


async def test_a_run_that_changed_in_the_store_is_read_again(bench: Any) -> None:
    """What is remembered of a run is not trusted: the commit finds that it moved on."""
    run = await bench.start("gate")
    refused = await bench.post(f"/runs/{run}/gates/review/events", {"type": "other"})
    assert refused.status_code == 400

    def move(db: sqlite3.Connection) -> None:
        db.execute("UPDATE runs SET seq = seq + 5 WHERE id = ?", (run,))

    await bench.store.write(move)
    taken = await bench.post(f"/runs/{run}/gates/review/events", {"type": "go"})
    assert taken.status_code == 200, taken.text
    assert (await bench.status(run))["status"] == "done"


async def test_a_piece_that_raises_takes_back_its_own_changes_only(bench: Any) -> None:
    """The pieces of one transaction are run again apart when one of them raises."""

    def insert(db: sqlite3.Connection, key: str) -> None:
        db.execute("CREATE TABLE IF NOT EXISTS pieces (key TEXT PRIMARY KEY) STRICT")
        db.execute("INSERT INTO pieces (key) VALUES (?)", (key,))

    def raises(db: sqlite3.Connection) -> None:
        insert(db, "taken back")
        raise ValueError("a piece")

    jobs = [
        bench.store.write(raises if each == 3 else lambda db, each=each: insert(db, str(each)))
        for each in range(6)
    ]
    outcomes = await asyncio.gather(*jobs, return_exceptions=True)
    assert [type(each) for each in outcomes if each is not None] == [ValueError]
    kept = await bench.store.read(
        lambda db: [row[0] for row in db.execute("SELECT key FROM pieces ORDER BY key")]
    )
    assert kept == ["0", "1", "2", "4", "5"]
