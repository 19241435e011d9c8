"""Lists of live runs: a piece at a time, without what they do not show, and past a damaged row."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from jr2_runtime.orchestrator.api import listing
from jr2_runtime.orchestrator.store import runs as rows
from jr2_runtime.orchestrator.store.rows import UNREADABLE

pytestmark = pytest.mark.anyio


async def test_whole_statuses_are_sent_a_piece_at_a_time(bench: Any) -> None:
    first = await bench.start("gate")
    before = await bench.store.read(lambda db: rows.read(db, first))
    large = {"status": "active", "value": "review", "context": "x" * 100_000, "gates": []}

    def fill(db: Any) -> None:
        for number in range(20):
            run = before._replace(id=f"r{number:02}", view=json.dumps(large))
            rows.insert(db, run, rows.NOTHING, bench.clock.now() + number)

    await bench.store.write(fill)
    pieces = [each async for each in listing.statuses(bench.store, bench.registry.hash)]
    assert len(pieces) > 5
    assert max(map(len, pieces)) < listing.PIECE + 101_000
    listed = json.loads(b"".join(pieces))
    assert [each["runId"] for each in listed] == [first, *(f"r{n:02}" for n in range(20))]
    assert (await bench.get("/runs")).json() == listed


async def test_no_live_run_is_an_empty_list(bench: Any) -> None:
    assert (await bench.get("/runs")).json() == []
    assert (await bench.get("/workflows/gate/runs")).json() == []


async def test_what_anybody_may_see_is_read_without_the_contexts(bench: Any) -> None:
    run = await bench.start("gate")
    (found,) = await bench.store.read(lambda db: rows.observed(db, "gate"))
    assert found.id == run
    assert json.loads(found.view) == {"value": "review", "children": []}
    nested = {"value": {"a": ["b", 1.5]}, "children": [{"id": "c", "value": "x\ud7ff"}]}
    await bench.store.write(
        lambda db: db.execute("UPDATE runs SET view = ?", (json.dumps({**nested, "context": 1}),))
    )
    (found,) = await bench.store.read(lambda db: rows.observed(db, "gate"))
    assert json.loads(found.view) == nested


@pytest.mark.parametrize("view", ["no JSON", "[]", '{"value":' + "[" * 5000 + "]" * 5000 + "}"])
async def test_a_run_whose_row_is_damaged_hides_no_other(bench: Any, view: str) -> None:
    damaged, whole = await bench.start("gate"), await bench.start("gate")
    await bench.store.write(
        lambda db: db.execute("UPDATE runs SET view = ? WHERE id = ?", (view, damaged))
    )
    listed = {each["runId"]: each for each in (await bench.get("/runs")).json()}
    assert listed[damaged]["fault"] == UNREADABLE
    assert listed[whole]["value"] == "review"
    assert (await bench.get(f"/runs/{damaged}")).status_code == 200
    observed = (await bench.get("/workflows/gate/runs")).json()
    assert {each["runId"] for each in observed} == {damaged, whole}
    assert (await bench.post(f"/runs/{damaged}/events", {"type": "CANCEL"})).status_code == 200


async def test_a_start_goes_past_rows_that_are_damaged(short_folder: Path, rig: ModuleType) -> None:
    async with rig.open_bench(short_folder) as bench:
        await bench.publish()
        tasked, whole = await bench.start("task"), await bench.start("gate")
        await bench.store.write(lambda db: db.execute("UPDATE tasks SET machine = 'no JSON'"))
        await bench.store.write(lambda db: db.execute("UPDATE assemblies SET workflows = '{'"))
    async with rig.open_bench(short_folder) as bench:
        # The task is asked for under a path that no Machine has, so its run hears of it.
        request, _ = await bench.worker.tasks.get()
        assert (request["run_id"], request["machine"]) == (tasked, ["no JSON"])
        posted = await bench.post(f"/runs/{whole}/gates/review/events", {"type": "go"})
        assert posted.status_code == 200
        assert bench.registry.hash is None
        assert (await bench.publish()).status_code == 201
        assert await bench.start("gate")


async def test_a_damaged_row_fails_its_own_event_and_no_other_of_the_batch(
    short_folder: Path, rig: ModuleType
) -> None:
    async with rig.open_bench(short_folder) as bench:
        await bench.publish()
        runs = [await bench.start("gate") for _ in range(8)]
        await bench.store.write(
            lambda db: db.execute("UPDATE runs SET view = '{\"gates\":5}' WHERE id = ?", (runs[3],))
        )
    async with rig.open_bench(short_folder) as bench:
        answers = await asyncio.gather(
            *(bench.post(f"/runs/{run}/gates/review/events", {"type": "go"}) for run in runs)
        )
        codes = [answer.status_code for answer in answers]
        assert codes == [500 if run == runs[3] else 200 for run in runs]


async def test_a_store_of_which_a_part_is_gone_is_shown_as_far_as_it_goes(
    short_folder: Path, rig: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig.open_bench(short_folder) as bench:
        await bench.publish()
        run = await bench.start("gate")
        await bench.store.write(lambda db: db.execute("DROP TABLE tasks"))
    async with rig.open_bench(short_folder) as bench:
        said = "the tasks of an Assembly were not started again"
        await bench.eventually(lambda: said in caplog.text)
        (observed,) = (await bench.get("/workflows/gate/runs")).json()
        assert (observed["runId"], observed["value"]) == (run, "review")
        assert (await bench.get("/healthz")).status_code == 200
