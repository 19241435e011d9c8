"""After a start: which runs go on and which cannot; and that each live run has a next action."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from jr2 import frames, host_wire
from jr2_runtime.orchestrator.engine.restore import misfits
from jr2_runtime.orchestrator.store import runs

pytestmark = pytest.mark.anyio

ANNOUNCED = "runs that do not go on after the start"


def announced(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.message == ANNOUNCED]


async def test_runs_that_go_on_are_not_mentioned(
    short_folder: Path, rig: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig.open_bench(short_folder) as bench:
        await bench.publish()
        run = await bench.start("task")
    async with rig.open_bench(short_folder) as bench:
        request, writer = await bench.worker.tasks.get()
        assert request["run_id"] == run
        writer.write(frames.encode({"id": request["id"], "kind": "task_done", "key": "k1"}))
        await bench.eventually(lambda: rig.says(bench, run, "done"))
    assert announced(caplog) == []


async def test_runs_whose_machine_changed_drift_before_any_of_their_tasks_starts(
    short_folder: Path, rig: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig.open_bench(short_folder) as bench:
        await bench.publish()
        parked = await bench.start("gate")
        tasked = await bench.start("task")
        timed = await bench.start("timer", {"delay": 60})
        await bench.store.write(
            lambda db: db.execute("UPDATE runs SET shape = 'old' WHERE id <> ?", (timed,))
        )
        await bench.store.write(
            lambda db: db.execute("UPDATE runs SET workflow = 'gone' WHERE id = ?", (timed,))
        )
    async with rig.open_bench(short_folder) as bench:
        for run in (parked, tasked):
            await bench.eventually(lambda run=run: rig.says(bench, run, "drifted"))
            status = await bench.status(run)
            assert status["reason"].endswith("shape 0123456789ab; the run was saved under old")
            assert status["context"]["secret"] == "context only"
        await bench.eventually(lambda: rig.says(bench, timed, "lost"))
        assert "no workflow of that name" in (await bench.status(timed))["reason"]
        await bench.eventually(lambda: announced(caplog))
        assert bench.worker.tasks.empty()
        assert (await bench.get("/runs")).json() == []
        (line,) = announced(caplog)
        assert (line["lost"], line["drifted"], line["failed"]) == (1, 2, 0)
        assert set(line["drifted_runs"]) == {parked, tasked}
        assert line["lost_runs"] == [timed]


async def test_runs_whose_assembly_is_gone_are_lost_and_announced(
    short_folder: Path, rig: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig.open_bench(short_folder) as bench:
        await bench.publish()
        run = await bench.start("gate")
        hash_ = bench.registry.hash
    shutil.rmtree(short_folder / "state" / "assemblies" / hash_)
    async with rig.open_bench(short_folder) as bench:
        status = await bench.status(run)
        assert status["status"] == "lost"
        assert status["reason"] == f"Assembly {hash_[:12]} is not on the state volume any more"
        await bench.eventually(lambda: announced(caplog))
    (line,) = announced(caplog)
    assert (line["lost"], line["lost_runs"]) == (1, [run])


async def test_an_assembly_that_does_not_load_leaves_its_runs_live_for_a_later_try(
    short_folder: Path, rig: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig.open_bench(short_folder) as bench:
        await bench.publish()
        run = await bench.start("gate")
    refusing = True

    def refuse(request: dict[str, Any], body: bytes) -> Any:
        if request["op"] == "load" and refusing:
            return {"kind": "broken", "error": "no memory"}, b""
        return None

    async with rig.open_bench(short_folder, answer=refuse) as bench:
        await bench.eventually(lambda: announced(caplog))
        (line,) = announced(caplog)
        assert (line["failed"], line["failed_runs"]) == (1, [run])
        assert (await bench.status(run))["status"] == "active"
        refusing = False
        answer = await bench.post(f"/runs/{run}/gates/review/events", {"type": "go"})
        assert answer.status_code == 200


async def test_the_shapes_of_an_older_assembly_are_compared_in_a_process_that_is_not_kept(
    short_folder: Path, rig: ModuleType
) -> None:
    async with rig.open_bench(short_folder) as bench:
        first = rig.assembly("first")
        await bench.publish(first)
        run = await bench.start("gate")
        second = rig.assembly("second")
        await bench.publish(second)
    async with rig.open_bench(short_folder) as bench:
        await bench.eventually(lambda: first[0] in bench.worker.opened)
        await bench.eventually(lambda: not bench.worker.is_open(first[0]))
        answer = await bench.post(f"/runs/{run}/gates/review/events", {"type": "go"})
        assert answer.status_code == 200


def test_a_shape_is_compared_with_that_of_its_own_workflow() -> None:
    one = host_wire.LoadedWorkflow(name="a", machine_id="a", input=None, shape="1", document={})
    loaded = host_wire.Loaded(
        id=1,
        kit_version="1",
        instance="i",
        workflows=[one, one.model_copy(update={"name": "b", "shape": "2"})],
        problems=[],
    )
    found = misfits([("a", "1"), ("b", "2"), ("a", "2"), ("c", "1")], loaded)
    assert [(each.workflow, each.shape, each.status) for each in found] == [
        ("a", "2", "drifted"),
        ("c", "1", "lost"),
    ]


async def test_a_live_run_has_a_gate_a_task_or_a_timer_and_is_stuck_else(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)

    def rests(request: dict[str, Any], body: bytes) -> Any:
        if request["op"] != "step":
            return None
        view = {"status": "active", "value": "resting", "context": {}, "gates": []}
        return {"kind": "stepped", "view": view, "commands": []}, b"{}"

    moving = [await bench.start("gate"), await bench.start("task")]
    moving.append(await bench.start("timer", {"delay": 60}))
    run = await bench.start("gate")
    assert await bench.store.read(runs.stuck) == []
    assert "stuck" not in await bench.status(run)
    assert (await bench.get("/assemblies")).json()["stuck"] == []

    bench.worker.answer = rests
    await bench.post(f"/runs/{run}/gates/review/events", {"type": "go"})
    assert await bench.store.read(runs.stuck) == [run]
    assert (await bench.status(run))["stuck"] == "no next action"
    for each in moving:
        assert "stuck" not in await bench.status(each)
    listed = {each["runId"]: each.get("stuck") for each in (await bench.get("/runs")).json()}
    assert listed == {run: "no next action", **dict.fromkeys(moving)}
    assert (await bench.get("/assemblies")).json()["stuck"] == [run]

    await bench.post(f"/runs/{run}/events", {"type": "CANCEL"})
    assert await bench.store.read(runs.stuck) == []
