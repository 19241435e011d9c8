"""The store: one transaction for a step, each event consumed once, nothing half done."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jr2.wire import LeaseStamp
from jr2_runtime.orchestrator.store import (
    Answer,
    Assembly,
    Once,
    OtherRequest,
    Run,
    Stale,
    Store,
    StoreError,
    Task,
    Timer,
    answers,
    assemblies,
    runs,
    schema,
    steps,
)
from jr2_runtime.orchestrator.store.runs import Changes
from tests.waiting import LIMIT

pytestmark = pytest.mark.anyio

A, B = "a" * 64, "b" * 64
KIT = "1.0.0"


def assembly(hash_: str, kit_version: str = KIT) -> Assembly:
    return Assembly(
        hash=hash_, kit_version=kit_version, instance="unit", workflows="[]", current=True
    )


def run(id_: str, hash_: str = A) -> Run:
    return Run(
        id=id_,
        instance_id=f"i-{id_}",
        workflow="w",
        assembly=hash_,
        shape="s",
        status="live",
        reason=None,
        seq=1,
        view='{"value":"v"}',
        snapshot=b"1",
    )


def task(id_: str, key: str) -> Task:
    return Task(run=id_, workflow="w", assembly=A, key=key, machine=(), slot="s", input="{}")


def timer(id_: str, key: str, due_at: int) -> Timer:
    return Timer(run=id_, key=key, due_at=due_at)


def after(before: Run) -> Run:
    return before._replace(seq=before.seq + 1, snapshot=b"2")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    made = Store(tmp_path / "state.db")
    await made.write(lambda db: assemblies.make_current(db, assembly(A), 0))
    yield made
    made.close()


async def test_a_step_is_one_transaction(store: Store) -> None:
    first = run("r")
    started = Changes(started=(task("r", "k"),), armed=(timer("r", "t", 50),))
    await store.write(lambda db: runs.insert(db, first, started, 10))
    assert await store.read(lambda db: runs.read(db, "r")) == first
    waiting = [("r", "k", len(task("r", "k").input))]
    assert await store.read(lambda db: runs.unfinished(db, A)) == waiting
    assert await store.read(lambda db: runs.read_task(db, "r", "k")) == task("r", "k")

    second = after(first)
    await store.write(
        lambda db: runs.commit_step(db, second, Changes(disarmed=("t",)), 20, consumed_task="k")
    )
    assert await store.read(lambda db: runs.read(db, "r")) == second
    assert await store.read(lambda db: runs.unfinished(db, A)) == []
    assert await store.read(lambda db: runs.due(db, 99, KIT, 9)) == ([], None)


async def test_an_event_is_consumed_once(store: Store) -> None:
    first = run("r")
    changes = Changes(started=(task("r", "k"),), armed=(timer("r", "t", 50),))
    await store.write(lambda db: runs.insert(db, first, changes, 10))
    second, third = after(first), after(after(first))
    await store.write(lambda db: runs.commit_step(db, second, Changes(), 20, consumed_task="k"))
    for attempt, consumed in (
        (second, {"consumed_task": "k"}),  # the same step again
        (third, {"consumed_task": "k"}),  # its result again, a step later
        (third, {"consumed_timer": "no"}),
    ):
        with pytest.raises(Stale):
            await store.write(
                lambda db, a=attempt, c=consumed: runs.commit_step(db, a, Changes(), 30, **c)  # type: ignore[misc]
            )
        assert await store.read(lambda db: runs.read(db, "r")) == second
    await store.write(lambda db: runs.commit_step(db, third, Changes(), 30, consumed_timer="t"))


async def test_a_settled_run_takes_nothing_more_and_keeps_no_task_or_timer(store: Store) -> None:
    first = run("r")
    changes = Changes(started=(task("r", "k"),), armed=(timer("r", "t", 50),))
    await store.write(lambda db: runs.insert(db, first, changes, 10))
    settled = await store.write(lambda db: runs.settle(db, "r", "cancelled", None, 20))
    assert settled is not None
    assert (settled.status, settled.seq) == ("cancelled", 2)
    assert await store.read(lambda db: runs.unfinished(db, A)) == []
    assert await store.read(lambda db: runs.read_task(db, "r", "k")) is None
    assert await store.read(lambda db: runs.due(db, 99, KIT, 9)) == ([], None)
    assert await store.write(lambda db: runs.settle(db, "r", "lost", None, 30)) is None
    with pytest.raises(Stale):
        await store.write(lambda db: runs.commit_step(db, after(after(first)), Changes(), 40))


async def test_a_piece_that_fails_takes_back_its_own_changes_only(store: Store) -> None:
    def half(db: sqlite3.Connection) -> None:
        runs.insert(db, run("bad"), Changes(), 1)
        raise Stale("half way")

    outcomes = await asyncio.gather(
        store.write(lambda db: runs.insert(db, run("one"), Changes(), 1)),
        store.write(half),
        store.write(lambda db: runs.insert(db, run("two"), Changes(), 1)),
        return_exceptions=True,
    )
    assert [type(each) for each in outcomes] == [type(None), Stale, type(None)]
    assert await store.read(runs.live_ids) == ["one", "two"]


async def test_a_disk_that_is_full_fails_the_write_and_keeps_what_was(store: Store) -> None:
    await store.write(lambda db: runs.insert(db, run("small"), Changes(), 1))
    await store.write(lambda db: db.execute("PRAGMA max_page_count = 20").fetchall())
    large = run("large")._replace(snapshot=b"x" * 2**20)
    with pytest.raises(StoreError, match="full"):
        await store.write(lambda db: runs.insert(db, large, Changes(), 1))
    assert await store.read(runs.live_ids) == ["small"]
    await store.write(lambda db: runs.settle(db, "small", "cancelled", None, 2))
    store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.write(lambda db: None)


async def test_timers_are_due_most_overdue_first_and_only_where_they_can_be_taken(
    store: Store,
) -> None:
    await store.write(lambda db: assemblies.make_current(db, assembly(B, "0.9.0"), 0))
    due = {"late": 10, "later": 5, "future": 90}
    for id_, at in due.items():
        await store.write(
            lambda db, id_=id_, at=at: runs.insert(  # type: ignore[misc]
                db, run(id_), Changes(armed=(timer(id_, "t", at),)), 0
            )
        )
    other = Changes(armed=(timer("other", "t", 1),))
    await store.write(lambda db: runs.insert(db, run("other", B), other, 0))
    found, following = await store.read(lambda db: runs.due(db, 50, KIT, 9))
    assert [each.run for each in found] == ["later", "late"]
    assert following == 90


async def test_a_run_is_not_started_under_an_assembly_that_is_gone(store: Store) -> None:
    with pytest.raises(Stale):
        await store.write(lambda db: runs.insert(db, run("r", B), Changes(), 0))
    assert await store.read(runs.live_ids) == []


async def test_settled_runs_go_after_seven_days_and_live_ones_never(store: Store) -> None:
    week = 7 * 24 * 3600 * 1000
    for id_ in ("live", "old", "new"):
        await store.write(lambda db, id_=id_: runs.insert(db, run(id_), Changes(), 0))  # type: ignore[misc]
    await store.write(lambda db: runs.settle(db, "old", "done", None, 1000))
    await store.write(lambda db: runs.settle(db, "new", "done", None, 1001))
    assert await store.write(lambda db: runs.sweep(db, 1001 + week)) == 1
    left = await store.read(lambda db: db.execute("SELECT id FROM runs ORDER BY id").fetchall())
    assert left == [("live",), ("new",)]


async def test_a_prefix_is_no_pattern(store: Store) -> None:
    for id_ in ("abcd-1", "abcd-2", "ab%d-3", "abce"):
        await store.write(lambda db, id_=id_: runs.insert(db, run(id_), Changes(), 0))  # type: ignore[misc]
    assert await store.read(lambda db: runs.by_prefix(db, "abcd", 9)) == ["abcd-1", "abcd-2"]
    assert await store.read(lambda db: runs.by_prefix(db, "ab%d", 9)) == ["ab%d-3"]
    assert await store.read(lambda db: runs.by_prefix(db, "ab", 2)) == ["ab%d-3", "abcd-1"]


async def test_an_assembly_is_released_when_neither_current_nor_held(store: Store) -> None:
    await store.write(lambda db: runs.insert(db, run("r"), Changes(), 0))
    await store.write(lambda db: assemblies.make_current(db, assembly(B), 1))
    assert await store.write(assemblies.release) == []
    await store.write(lambda db: runs.settle(db, "r", "done", None, 2))
    assert await store.write(assemblies.release) == [A]
    assert [each.hash for each in await store.read(assemblies.held)] == [B]


async def test_a_lease_that_another_has_followed_is_refused(store: Store) -> None:
    moment = datetime(2026, 11, 30, tzinfo=UTC)
    first = LeaseStamp(acquired=moment, nonce="one")
    second = LeaseStamp(acquired=moment + timedelta(microseconds=1), nonce="two")
    twin = LeaseStamp(acquired=second.acquired, nonce="three")
    for stamp in (first, first, second, second):
        await store.write(lambda db, stamp=stamp: assemblies.record_lease(db, stamp))  # type: ignore[misc]
    for stamp in (first, twin):
        with pytest.raises(Stale):
            await store.write(lambda db, stamp=stamp: assemblies.record_lease(db, stamp))  # type: ignore[misc]
    assert await store.read(assemblies.last_lease) == second


def test_migrations_are_applied_once_and_a_later_database_is_refused(tmp_path: Path) -> None:
    for _ in range(2):
        Store(tmp_path / "state.db").close()
    with sqlite3.connect(tmp_path / "state.db") as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        assert version == len(schema.MIGRATIONS)
        connection.execute(f"PRAGMA user_version = {version + 1}")
    connection.close()
    with pytest.raises(schema.NewerDatabase):
        Store(tmp_path / "state.db")


def test_a_commit_is_synced_to_the_disk(tmp_path: Path) -> None:
    from jr2_runtime.orchestrator.store.database import connect

    connection = connect(tmp_path / "state.db")
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


async def test_each_workflow_and_shape_of_the_live_runs_is_found_once(store: Store) -> None:
    made = [("w", "1"), ("w", "1"), ("w", "2"), ("v", "2"), ("settled", "3")]
    for number, (workflow, shape) in enumerate(made):
        row = run(f"r{number}")._replace(workflow=workflow, shape=shape)
        await store.write(lambda db, row=row: runs.insert(db, row, Changes(), 0))  # type: ignore[misc]
    await store.write(lambda db: runs.settle(db, "r4", "done", None, 1))
    assert await store.read(lambda db: runs.shapes(db, A)) == [("v", "2"), ("w", "1"), ("w", "2")]
    assert await store.read(lambda db: runs.shapes(db, B)) == []


def recorded(before: Run, **more: Any) -> steps.Recorded:
    changes = more.pop("changes", Changes())
    after_it = after(before)
    return steps.Recorded(
        run=after_it._replace(gates=more.pop("gates", before.gates)),
        changes=changes,
        plain=more.pop("plain", True),
        **more,
    )


async def test_steps_of_many_runs_are_one_piece_of_a_transaction(store: Store) -> None:
    started = [run(f"r{number}") for number in range(70)]
    for each in started:
        await store.write(lambda db, each=each: runs.insert(db, each, Changes(), 1))  # type: ignore[misc]
    await store.write(
        lambda db: runs.commit_step(db, after(started[0]), Changes(armed=(timer("r0", "t", 5),)), 2)
    )
    started[0] = after(started[0])
    made = [recorded(each, once=Once(key=each.id, fingerprint="f")) for each in started[1:]]
    made.append(
        recorded(
            started[0], timer="t", plain=False, gates=2, changes=Changes(started=(task("r0", "k"),))
        )
    )
    answer = Answer(code=200, body="{}")

    await store.write(lambda db: steps.record(db, made, answer, 3))

    ids = [each.id for each in started]
    found, _ = await store.read(lambda db: runs.read_some(db, ids, 2**20))
    assert found == {each.run.id: each.run for each in made}
    assert await store.read(lambda db: runs.due(db, 10, KIT, 9)) == ([], None)
    assert [key for _, key, _ in await store.read(lambda db: runs.unfinished(db, A))] == ["k"]
    kept = await store.read(lambda db: answers.find(db, Once(key="r69", fingerprint="f")))
    assert kept == answer


@pytest.mark.parametrize("wrong", ["moved on", "settled", "key", "timer", "task"])
async def test_of_steps_that_do_not_go_together_none_is_recorded(store: Store, wrong: str) -> None:
    first, second = run("r1"), run("r2")
    for each in (first, second):
        await store.write(lambda db, each=each: runs.insert(db, each, Changes(), 1))  # type: ignore[misc]
    answer = Answer(code=200, body="{}")
    more: dict[str, Any] = {}
    match wrong:
        case "moved on":
            second = second._replace(seq=9)
        case "settled":
            await store.write(lambda db: runs.settle(db, "r2", "cancelled", None, 2))
        case "key":
            more = {"once": Once(key="k", fingerprint="other")}
            once = Once(key="k", fingerprint="f")
            await store.write(lambda db: answers.keep(db, once, answer, 2))
        case _:
            more = {wrong: "k"}
    made = [recorded(first), recorded(second, **more)]

    with pytest.raises(steps.Apart):
        await store.write(lambda db: steps.record(db, made, answer, 3))

    found = await store.read(lambda db: runs.read(db, "r1"))
    assert found == first
    await store.write(lambda db: steps.record(db, made[:1], answer, 3))
    with pytest.raises((Stale, OtherRequest)):
        await store.write(lambda db: steps.record(db, made[1:], answer, 3))


async def test_what_steps_cost_does_not_grow_with_the_runs_that_wait(store: Store) -> None:
    asked: list[int] = []
    for number in (30, 3000):

        def park(db: sqlite3.Connection, number: int = number) -> None:
            for each in range(number):
                id_ = f"p{number}-{each}"
                runs.insert(db, run(id_), Changes(armed=(timer(id_, "t", 10**12),)), 1)

        await store.write(park)
        asked.append(await _instructions(store, number))
    few, many = asked
    assert many < 1.5 * few


async def _instructions(store: Store, mark: int) -> int:
    """Return what eight steps cost: half of them go on, half end, all consume and arm timers."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    begun = [run(f"s{mark}-{number}") for number in range(8)]
    for each in begun:
        armed = Changes(armed=(timer(each.id, "t", 10**12),))
        await store.write(lambda db, each=each, armed=armed: runs.insert(db, each, armed, 1))  # type: ignore[misc]
    made = [
        recorded(each, timer="t", changes=Changes(armed=(timer(each.id, "u", 10**12),)))
        for each in begun[:4]
    ]
    for each in begun[4:]:
        step = recorded(each, timer="t", plain=False)
        made.append(step._replace(run=step.run._replace(status="done")))

    def job(db: sqlite3.Connection) -> None:
        db.set_progress_handler(tick, 1)
        steps.record(db, made, Answer(code=200, body="{}"), 3)
        db.set_progress_handler(None, 0)

    await store.write(job)
    left = await store.read(
        lambda db: db.execute("SELECT key FROM timers WHERE run LIKE 's%'").fetchall()
    )
    assert {key for (key,) in left} == {"u"}
    return count


async def where_it_ran(store: Store, *, alone: bool) -> str:
    return await store.write(lambda _: threading.current_thread().name, alone=alone)


async def test_a_write_that_is_alone_is_committed_by_the_loop_while_commits_are_short(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path / "state.db", short=3600)
    loop = threading.current_thread().name
    try:
        # What is usual is not known at first, so the first ones go to the thread.
        assert await where_it_ran(store, alone=True) == "store-writer"
        for _ in range(10):
            await where_it_ran(store, alone=False)

        assert await where_it_ran(store, alone=True) == loop
        assert await where_it_ran(store, alone=False) == "store-writer"
        await store.write(lambda db: assemblies.make_current(db, assembly(A), 0), alone=True)
        with sqlite3.connect(tmp_path / "state.db") as other:
            assert other.execute("SELECT hash FROM assemblies").fetchall() == [(A,)]
    finally:
        store.close()


async def test_a_write_that_is_alone_goes_to_the_thread_while_commits_are_long(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path / "state.db", short=0)
    try:
        for _ in range(20):
            assert await where_it_ran(store, alone=True) == "store-writer"
    finally:
        store.close()


async def test_a_write_that_is_alone_and_fails_changes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db", short=3600)

    def breaks(db: sqlite3.Connection) -> None:
        assemblies.make_current(db, assembly(A), 0)
        raise Stale(threading.current_thread().name)

    try:
        for _ in range(10):
            await where_it_ran(store, alone=False)

        with pytest.raises(Stale, match=threading.current_thread().name):
            await store.write(breaks, alone=True)

        assert await store.write(assemblies.held) == []
    finally:
        store.close()


async def test_a_write_that_is_alone_joins_the_thread_when_that_is_at_work(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db", short=3600)
    begun, go_on = threading.Event(), threading.Event()

    def waits(_: sqlite3.Connection) -> None:
        begun.set()
        go_on.wait(LIMIT)

    try:
        for _ in range(10):
            await where_it_ran(store, alone=False)
        slow = asyncio.ensure_future(store.write(waits))
        await asyncio.to_thread(begun.wait, 20)
        met = asyncio.ensure_future(where_it_ran(store, alone=True))
        await asyncio.sleep(0)
        go_on.set()

        assert await met == "store-writer"
        await slow
    finally:
        go_on.set()
        store.close()


async def test_what_is_written_in_one_turn_of_the_loop_is_one_transaction(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db")
    ran: list[str] = []

    def fits(_: sqlite3.Connection) -> None:
        ran.append("fits")

    def breaks(_: sqlite3.Connection) -> None:
        ran.append("breaks")
        raise Stale("no")

    try:
        made = await asyncio.gather(store.write(fits), store.write(breaks), return_exceptions=True)

        # Together, then each alone, since one of them does not fit.
        assert ran == ["fits", "breaks", "fits", "breaks"]
        assert made[0] is None
        assert isinstance(made[1], Stale)
    finally:
        store.close()


async def test_a_close_commits_what_was_asked_for_in_the_same_turn(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.db")
    written = asyncio.ensure_future(
        store.write(lambda db: assemblies.make_current(db, assembly(A), 0))
    )
    await asyncio.sleep(0)

    store.close()

    await written
    with sqlite3.connect(tmp_path / "state.db") as other:
        assert other.execute("SELECT hash FROM assemblies").fetchall() == [(A,)]
