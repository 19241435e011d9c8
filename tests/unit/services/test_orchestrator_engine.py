"""The engine against a scripted worker: timers, tasks, strikes, restarts, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jr2 import frames, host_wire, names
from jr2_runtime.orchestrator.engine import engine
from jr2_runtime.orchestrator.engine.timers import Timers
from jr2_runtime.orchestrator.engine.transition import after_step
from jr2_runtime.orchestrator.host import process
from jr2_runtime.orchestrator.store import Run, StoreError
from tests.waiting import LIMIT

pytestmark = pytest.mark.anyio


async def take_task(bench: Any) -> tuple[dict[str, Any], asyncio.StreamWriter]:
    async with asyncio.timeout(LIMIT):
        request, writer = await bench.worker.tasks.get()
    assert isinstance(request, dict)
    return request, writer


def reply(writer: asyncio.StreamWriter, request: dict[str, Any], **fields: Any) -> None:
    writer.write(frames.encode({"id": request["id"], **fields}))


async def until(bench: Any, run: str, status: str) -> dict[str, Any]:
    async def has_status() -> bool:
        return bool((await bench.status(run))["status"] == status)

    await bench.eventually(has_status)
    found = await bench.status(run)
    assert isinstance(found, dict)
    return found


async def test_a_timer_of_seven_days_fires_then_and_not_before(bench: Any) -> None:
    week = 7 * 24 * 3600
    run = await bench.start("timer", {"delay": week})
    bench.clock.advance(week - 1)
    other = await bench.start("timer", {"delay": 0})
    await until(bench, other, "done")
    assert (await bench.status(run))["status"] == "active"
    bench.clock.advance(1)
    done = await until(bench, run, "done")
    assert done["context"]["seen"] == [{"kind": "timer", "key": "t1"}]


async def test_a_timer_whose_event_waits_is_fired_once_however_often_one_looks(
    bench: Any,
) -> None:
    run = await bench.start("timer", {"delay": 60})
    # The engine's own clock stays where it is, so the timer is nobody else's.
    clock = type(bench.clock)()
    clock.advance(61)
    fired: asyncio.Queue[str] = asyncio.Queue()
    timers = Timers(
        bench.store, clock, names.KIT_VERSION, lambda timer: fired.put_nowait(timer.run)
    )
    looking = asyncio.ensure_future(timers.run())
    try:
        assert await fired.get() == run
        other = await bench.start("timer", {"delay": 30})
        timers.look()
        # The other one comes alone.
        assert await fired.get() == other
        assert fired.empty()
        timers.settled(run, "t1")  # it was not consumed, as after a strike
        timers.look()
        assert await fired.get() == run
    finally:
        looking.cancel()


async def test_after_a_restart_due_timers_fire_most_overdue_first(
    short_folder: Path, rig: Any
) -> None:
    async with rig.open_bench(short_folder) as bench:
        await bench.publish()
        runs = [await bench.start("timer", {"delay": delay}) for delay in (30, 10, 20, 9999)]
        before = bench.clock.now()
    async with rig.open_bench(short_folder) as bench:
        bench.clock.advance((before - bench.clock.now()) / 1000 + 60)
        for run in runs[:3]:
            await until(bench, run, "done")
        fired = [ask["run_id"] for ask in bench.worker.asked if ask["op"] == "step"]
        assert fired == [runs[1], runs[2], runs[0]]
        assert (await bench.status(runs[3]))["status"] == "active"


async def test_a_task_goes_with_its_key_and_comes_back_once(bench: Any) -> None:
    run = await bench.start("task", {"n": 1})
    request, writer = await take_task(bench)
    assert {k: v for k, v in request.items() if k != "id"} == {
        "op": "task",
        "run_id": run,
        "workflow": "task",
        "key": "k1",
        "machine": [],
        "slot": "s",
        "input": {"n": 1},
    }
    # The key that comes back is not believed, and a second answer has no one to go to.
    for _ in range(2):
        reply(writer, request, kind="task_done", key="another", output={"m": 2})
    done = await until(bench, run, "done")
    assert done["context"]["seen"] == [{"kind": "task_done", "key": "k1", "output": {"m": 2}}]


async def test_a_task_in_flight_is_asked_again_after_a_restart_under_its_key(
    short_folder: Path, rig: Any
) -> None:
    async with rig.open_bench(short_folder) as bench:
        await bench.publish()
        run = await bench.start("task")
        first, _ = await take_task(bench)
    async with rig.open_bench(short_folder) as bench:
        second, writer = await take_task(bench)
        assert {**second, "id": 0} == {**first, "id": 0}
        reply(writer, second, kind="task_failed", key="k1", reason="no luck")
        done = await until(bench, run, "done")
        assert done["context"]["seen"] == [
            {"kind": "task_failed", "key": "k1", "reason": "no luck"}
        ]
    async with rig.open_bench(short_folder) as bench:
        await bench.start("gate")
        assert bench.worker.tasks.empty()


def count(request: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes] | None:
    """Answer a step as a Machine that stays where it is and counts whatever it hears."""
    if request["op"] != "step":
        return None
    seen = [*json.loads(body)["seen"], request["event"]]
    gate = {"gate": "review", "id": "g-1", "path": ["review"], "accepts": [], "meta": None}
    view = {"status": "active", "value": "counting", "context": {"seen": seen}, "gates": [gate]}
    snapshot = json.dumps({"state": "counting", "seen": seen}).encode()
    return {"kind": "stepped", "view": view, "commands": []}, snapshot


async def test_a_result_whose_commit_was_not_heard_of_is_applied_once(
    bench: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The disk has it and says that it has not: the engine delivers the same key again."""
    bench.worker.answer = count
    run = await bench.start("task")
    request, writer = await take_task(bench)
    write, unheard = bench.store.write, 1

    async def commit_and_fail(job: Any, **given: Any) -> Any:
        nonlocal unheard
        done = await write(job, **given)
        if unheard:
            unheard -= 1
            raise StoreError("the answer of the disk was lost")
        return done

    monkeypatch.setattr(bench.store, "write", commit_and_fail)
    reply(writer, request, kind="task_done", key="k1", output=1)

    def steps() -> list[str]:
        return [each["event"]["kind"] for each in bench.worker.asked if each["op"] == "step"]

    await bench.eventually(lambda: steps() == ["task_done", "task_done"])
    assert "the event of a task or a timer is tried again" in caplog.messages
    # Whatever is posted now comes after the second delivery.
    posted = await bench.post(f"/runs/{run}/gates/review/events", {"type": "go"})
    assert posted.status_code == 200
    seen = [each["kind"] for each in (await bench.status(run))["context"]["seen"]]
    assert seen == ["task_done", "gate"]


async def test_a_result_that_is_too_large_fails_its_task(bench: Any) -> None:
    run = await bench.start("task")
    request, writer = await take_task(bench)
    reply(writer, request, kind="task_done", key="k1", output="x" * names.MAX_EVENT)
    done = await until(bench, run, "done")
    (event,) = done["context"]["seen"]
    assert event["kind"] == "task_failed"
    assert str(names.MAX_EVENT) in event["reason"]


async def test_a_cancelled_run_stops_its_task_and_drops_the_result(bench: Any) -> None:
    run = await bench.start("task")
    request, writer = await take_task(bench)
    await bench.post(f"/runs/{run}/events", {"type": "CANCEL"})
    await bench.eventually(lambda: bench.worker.asked[-1]["op"] == "stop_task")
    assert (bench.worker.asked[-1]["run_id"], bench.worker.asked[-1]["key"]) == (run, "k1")
    reply(writer, request, kind="task_done", key="k1", output=1)
    other = await bench.start("gate")  # what came before has been read by now
    assert (await bench.status(other))["status"] == "active"
    assert (await bench.status(run))["status"] == "cancelled"
    assert [ask for ask in bench.worker.asked if ask["op"] == "step"] == []


def asked_tasks(bench: Any, run: str) -> list[dict[str, Any]]:
    """Return each request for the task of a run, without its number."""
    return [
        {**each, "id": 0}
        for each in bench.worker.asked
        if each["op"] == "task" and each["run_id"] == run
    ]


async def test_a_task_that_blocks_its_process_fails_and_those_beside_it_do_not(
    short_folder: Path, rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with rig.open_bench(short_folder, ping_every=0.02) as bench:
        await bench.publish()
        bench.worker.pongs = True
        blocker = await bench.start("task", {"block": True})
        await bench.eventually(lambda: bench.worker.blocked)
        good = [await bench.start("task", {"n": number}) for number in range(3)]
        await bench.eventually(lambda: all(asked_tasks(bench, run) for run in good))
        bench.worker.pongs = False
        for _ in good:
            # Those that share the process of the culprit come again until they are apart from it.
            request, writer = await take_task(bench)
            reply(writer, request, kind="task_done", key="k1", output=request["input"]["n"])
        for number, run in enumerate(good):
            done = await until(bench, run, "done")
            assert done["context"]["seen"] == [{"kind": "task_done", "key": "k1", "output": number}]
        failed = await until(bench, blocker, "done")
        assert failed["context"]["seen"] == [
            {
                "kind": "task_failed",
                "key": "k1",
                "reason": 'the task "s" blocked its process for 0.1 s — a task must not block; '
                "use asyncio.to_thread",
            }
        ]
        for run in (*good, blocker):
            first, *again = asked_tasks(bench, run)
            assert again, run
            assert all(each == first for each in again)
        assert "an Assembly process was ended" in caplog.messages
        # The process of new tasks is another one, and it is there.
        run = await bench.start("task", {"n": 9})
        request, writer = await take_task(bench)
        reply(writer, request, kind="task_done", key="k1", output=9)
        await until(bench, run, "done")
        assert len(asked_tasks(bench, run)) == 1


async def test_a_new_task_does_not_join_one_that_blocked_alone(
    short_folder: Path, rig: Any
) -> None:
    async with rig.open_bench(short_folder, ping_every=0.05) as bench:
        await bench.publish()
        blocker = await bench.start("task", {"block": True})
        await bench.eventually(lambda: len(asked_tasks(bench, blocker)) == 2)
        run = await bench.start("task", {"n": 1})
        request, writer = await take_task(bench)
        assert writer not in bench.worker.blocked
        reply(writer, request, kind="task_done", key="k1", output=1)
        await until(bench, run, "done")
        assert len(asked_tasks(bench, run)) == 1
        await until(bench, blocker, "done")
        assert len(asked_tasks(bench, blocker)) == 2


async def test_a_stop_that_is_not_acknowledged_ends_the_process_and_blames_nobody(
    short_folder: Path, rig: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a stop the block is noticed too, and on a slow disk before the stop comes.
    monkeypatch.setattr(process, "SILENCE", 1_000_000)
    async with rig.open_bench(short_folder, ping_every=0.1) as bench:
        await bench.publish()
        blocker = await bench.start("task", {"block": True})
        await bench.eventually(lambda: bench.worker.blocked)
        good = [await bench.start("task", {"n": number}) for number in range(2)]
        await bench.eventually(lambda: all(asked_tasks(bench, run) for run in good))
        await bench.post(f"/runs/{blocker}/events", {"type": "CANCEL"})
        writers = []
        for _ in good:
            request, writer = await take_task(bench)
            writers.append(writer)
            reply(writer, request, kind="task_done", key="k1", output=1)
        for run in good:
            await until(bench, run, "done")
        assert (await bench.status(blocker))["status"] == "cancelled"
        assert len(asked_tasks(bench, blocker)) == 1
        # Nobody was blamed: the two were not split.
        assert len(set(writers)) == 1
        reasons = [
            getattr(record, "reason", None)
            for record in caplog.records
            if record.getMessage() == "an Assembly process was ended"
        ]
        assert reasons == ["the stop of a task was not acknowledged within 0.2 s"]


async def test_a_process_that_answers_its_pings_is_left_alone(short_folder: Path, rig: Any) -> None:
    async with rig.open_bench(short_folder, ping_every=0.01) as bench:
        await bench.publish()
        runs = [await bench.start("task", {"n": number}) for number in range(2)]
        asked = [await take_task(bench) for _ in runs]
        # A stop is acknowledged by the loop, however long the task takes to clean up.
        await bench.post(f"/runs/{runs[0]}/events", {"type": "CANCEL"})
        seen = bench.worker.pings
        await bench.eventually(lambda: bench.worker.pings > seen + 20)
        request, writer = next(each for each in asked if each[0]["run_id"] == runs[1])
        reply(writer, request, kind="task_done", key="k1", output=1)
        await until(bench, runs[1], "done")
        assert len(asked_tasks(bench, runs[1])) == 1


async def test_a_run_whose_step_hangs_can_be_cancelled(bench: Any) -> None:
    run = await bench.start("gate")
    asked = asyncio.Event()

    def silent(request: dict[str, Any], body: bytes) -> None:
        if request["op"] == "step":
            asked.set()
            raise ConnectionError  # ends the link as a process that died would

    bench.worker.answer = silent
    bench.worker.leave()  # and no other process comes
    posting = asyncio.ensure_future(bench.post(f"/runs/{run}/gates/review/events", {"type": "go"}))
    await asked.wait()
    assert (await bench.post(f"/runs/{run}/events", {"type": "CANCEL"})).status_code == 200
    assert (await bench.status(run))["status"] == "cancelled"
    async with asyncio.timeout(LIMIT):
        assert (await posting).status_code == 404


@pytest.mark.parametrize("bound", ["MOST_OF_A_RUN", "MOST_WAITING"])
async def test_a_queue_that_is_full_refuses_what_comes_and_takes_it_later(
    bench: Any, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    run = await bench.start("gate")
    path = f"/runs/{run}/gates/review/events"
    monkeypatch.setattr(engine, bound, 3)

    def silent(request: dict[str, Any], body: bytes) -> None:
        if request["op"] == "step":
            raise ConnectionError  # ends the link as a process that died would

    bench.worker.answer = silent
    bench.worker.leave()  # and no other process comes
    waiting = [asyncio.ensure_future(bench.post(path, {"type": "go"})) for _ in range(3)]

    async def all_wait() -> bool:
        return bool(bench.engine.running().waiting == 3)

    await bench.eventually(all_wait)
    refused = await bench.post(path, {"type": "go"})
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert "wait; send it again later" in refused.json()["error"]
    # What frees a queue is taken all the same.
    assert (await bench.post(f"/runs/{run}/events", {"type": "CANCEL"})).status_code == 200
    async with asyncio.timeout(LIMIT):
        assert [(await each).status_code for each in waiting] == [404] * 3
    late = await bench.post(path, {"type": "go"})
    assert late.status_code == 404


@pytest.mark.parametrize("ending", ["silent", "dead", "nonsense", "other kind"])
async def test_a_step_is_tried_twice_then_its_run_faults(bench: Any, ending: str) -> None:
    bad, good = await bench.start("gate"), await bench.start("gate")
    steps: list[str] = []

    def answer(request: dict[str, Any], body: bytes) -> Any:
        if request["op"] != "step" or request["run_id"] == good:
            return None
        steps.append(request["run_id"])
        match ending:
            case "silent":
                # Never answered: the fake says something that has no asker instead.
                return {"kind": "broken", "id": 10**6, "error": ""}, b""
            case "dead":
                raise ConnectionError
            case "nonsense":
                return {"kind": "stepped", "view": 1}, b""
            case _:
                return {"kind": "task_done", "key": "k"}, b""

    bench.worker.answer = answer
    taken = await bench.post(f"/runs/{bad}/gates/review/events", {"type": "go"})
    assert taken.status_code == 200
    faulted = await bench.status(bad)
    assert faulted["status"] == "error"
    assert faulted["fault"]
    assert faulted["value"] == "review"
    assert len(steps) == (1 if ending == "other kind" else 2)
    assert (
        await bench.post(f"/runs/{good}/gates/review/events", {"type": "go"})
    ).status_code == 200
    assert (await bench.status(good))["status"] == "done"


async def test_a_start_that_ends_its_process_twice_starts_nothing(bench: Any) -> None:
    def answer(request: dict[str, Any], body: bytes) -> None:
        if request["op"] == "start":
            raise ConnectionError

    bench.worker.answer = answer
    refused = await bench.post("/workflows/gate/runs", {})
    assert refused.status_code == 500
    assert "ended twice" in refused.json()["error"]
    assert (await bench.get("/runs")).json() == []


async def test_an_input_that_does_not_fit_starts_nothing(bench: Any) -> None:
    bench.worker.answer = lambda request, body: (
        ({"kind": "refused", "code": 400, "error": "the door takes …"}, b"")
        if request["op"] == "start"
        else None
    )
    refused = await bench.post("/workflows/gate/runs", {"x": 1})
    assert (refused.status_code, refused.json()) == (400, {"error": "the door takes …"})
    assert (await bench.get("/runs")).json() == []


async def test_a_machine_of_another_shape_drifts(bench: Any) -> None:
    await bench.start("gate")
    run = "a-run-that-is-not-in-memory"
    await bench.store.write(
        lambda db: db.execute("UPDATE runs SET shape = 'other', id = ?", (run,))
    )
    refused = await bench.post(f"/runs/{run}/gates/review/events", {"type": "go"})
    assert refused.status_code == 404
    drifted = await bench.status(run)
    assert drifted["status"] == "drifted"
    assert drifted["reason"] == (
        'workflow "gate": the Machine has shape 0123456789ab; the run was saved under other'
    )


async def test_a_disk_that_is_full_refuses_and_a_run_can_still_be_read(bench: Any) -> None:
    run = await bench.start("gate")
    await bench.store.write(lambda db: db.execute("PRAGMA max_page_count = 1").fetchall())
    body = {"type": "go", "text": "x" * 100_000}
    refused = await bench.post(f"/runs/{run}/gates/review/events", body)
    assert refused.status_code == 507
    assert (await bench.status(run))["status"] == "active"
    await bench.store.write(lambda db: db.execute("PRAGMA max_page_count = 1073741823").fetchall())
    assert (await bench.post(f"/runs/{run}/gates/review/events", body)).status_code == 200
    done = await bench.status(run)
    assert len(done["context"]["seen"]) == 1


RUN = Run(
    id="r",
    instance_id="i",
    workflow="w",
    assembly="a" * 64,
    shape="s",
    status="live",
    reason=None,
    seq=3,
    view='{"value":"before"}',
    snapshot=b"before",
)


def stepped(snapshot: bytes = b"", **fields: Any) -> tuple[host_wire.Stepped, bytes]:
    """Return what a process answers: the reply, and its body."""
    view = {"status": "active", "value": "v", **fields.pop("view", {})}
    shown = json.dumps(view).encode()
    reply = host_wire.Stepped.model_validate(
        {"id": 1, "view": len(shown), "commands": [], **fields}
    )
    return reply, shown + snapshot


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (stepped(b"x" * (names.MAX_SNAPSHOT + 1)), "its snapshot has"),
        (stepped(view={"context": "x" * names.MAX_SNAPSHOT}), "what it shows has"),
        (stepped(view={"context": float("nan")}), "not finite"),
        (stepped(view={"status": "lost"}), "what it shows is not what a run shows: status"),
        (stepped(view={"more": 1}), "what it shows is not what a run shows: more"),
        (
            stepped(commands=[{"kind": "arm_timer", "key": "k", "delay": float("inf")}]),
            "the delay of a timer",
        ),
        (
            stepped(commands=[{"kind": "arm_timer", "key": "k", "delay": -1}]),
            "the delay of a timer",
        ),
        (
            stepped(
                commands=[
                    {
                        "kind": "arm_timer",
                        "key": "k",
                        "delay": timedelta.max.total_seconds() * 1.01,
                    }
                ]
            ),
            "the delay of a timer",
        ),
        (
            stepped(commands=[{"kind": "arm_timer", "key": "", "delay": 1}]),
            "the key of a command",
        ),
        (
            stepped(commands=[{"kind": "arm_timer", "key": "\ud800", "delay": 1}]),
            "the key of a command",
        ),
        (
            stepped(
                commands=[
                    {
                        "kind": "start_task",
                        "key": "k",
                        "machine": [],
                        "slot": "s",
                        "input": "x" * names.MAX_EVENT,
                    }
                ]
            ),
            "the input of the task 's'",
        ),
        (
            stepped(commands=[{"kind": "emit", "type": "t", "payload": "x" * names.MAX_EVENT}]),
            "an emitted event",
        ),
        (stepped(commands=[{"kind": "stop_task", "key": "k"}] * 10_001), "10001 commands"),
    ],
)
def test_an_answer_that_cannot_be_kept_faults_the_run_where_it_stood(
    answer: tuple[host_wire.Stepped, bytes], text: str
) -> None:
    transition = after_step(RUN, *answer, 0)
    assert transition.run.status == "error"
    assert transition.run.snapshot == b"before"
    view = json.loads(transition.run.view)
    assert (view["value"], view["status"]) == ("before", "error")
    assert text in view["fault"]
    assert transition.changes.started == ()


@pytest.mark.parametrize("delay", [timedelta(0), timedelta(days=36_525), timedelta.max])
async def test_a_timer_is_due_after_any_delay_that_an_author_can_say(
    bench: Any, delay: timedelta
) -> None:
    run = await bench.start("timer", {"delay": delay.total_seconds()})
    rows = await bench.store.read(
        lambda db: db.execute("SELECT run, due_at FROM timers WHERE due_at > 0").fetchall()
    )
    due = bench.clock.now() + math.ceil(delay.total_seconds() * 1000)
    if delay:
        assert rows == [(run, due)]
        assert (await bench.status(run))["status"] == "active"
    else:
        await until(bench, run, "done")


def test_what_one_step_starts_and_stops_cancels_out() -> None:
    task = {"kind": "start_task", "machine": ["child"], "slot": "s", "input": 1}
    transition = after_step(
        RUN,
        *stepped(
            b"after",
            commands=[
                {"kind": "stop_task", "key": "old"},
                {**task, "key": "new"},
                {**task, "key": "brief"},
                {"kind": "stop_task", "key": "brief"},
                {"kind": "arm_timer", "key": "t", "delay": 0.0005},
                {"kind": "arm_timer", "key": "u", "delay": 1},
                {"kind": "disarm_timer", "key": "u"},
                {"kind": "disarm_timer", "key": "w"},
            ],
        ),
        1000,
    )
    changes = transition.changes
    assert [(each.key, each.machine) for each in changes.started] == [("new", ("child",))]
    assert changes.stopped == ("old",)
    assert [(each.key, each.due_at) for each in changes.armed] == [("t", 1001)]
    assert changes.disarmed == ("w",)
    assert (transition.run.seq, transition.run.snapshot) == (4, b"after")
