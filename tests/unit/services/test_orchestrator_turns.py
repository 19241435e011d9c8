"""Tasks of user code: no more run at once than may, the runs take turns, and none is forgotten."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jr2 import frames
from jr2_runtime.orchestrator.engine.tasks import Tasks
from jr2_runtime.orchestrator.engine.turns import Turns, Waiting
from jr2_runtime.orchestrator.store.rows import Task
from tests.waiting import LIMIT

pytestmark = pytest.mark.anyio


def anybody(run: str) -> bool:
    return True


def taken(turns: Turns, count: int) -> list[str]:
    """Give so many their turn, and return whose it was."""
    found = []
    for _ in range(count):
        first = turns.first(anybody)
        assert first is not None
        turns.take(first)
        found.append(first.run + first.key)
    return found


def test_the_runs_take_turns() -> None:
    turns = Turns()
    for key in "1234":
        turns.add(Waiting("a", key, 0))
    for run in "bc":
        for key in "12":
            turns.add(Waiting(run, key, 0))
    assert taken(turns, 4) == ["a1", "b1", "c1", "a2"]
    turns.add(Waiting("d", "1", 0))
    assert taken(turns, 5) == ["b2", "c2", "a3", "d1", "a4"]
    assert (len(turns), turns.first(anybody)) == (0, None)


def test_a_run_that_may_not_is_passed_over() -> None:
    turns = Turns()
    turns.add(Waiting("a", "1", 5))
    turns.add(Waiting("b", "1", 6))
    assert turns.first(lambda run: run != "a") == Waiting("b", "1", 6)
    assert turns.first(lambda run: False) is None


@given(
    st.lists(st.tuples(st.sampled_from("artk"), st.sampled_from("xyz"), st.sampled_from("123"))),
)
def test_whatever_comes_and_goes_each_is_there_once(steps: list[tuple[str, str, str]]) -> None:
    turns, known = Turns(), set()
    for step, run, key in steps:
        if step == "a":
            turns.add(Waiting(run, key, 1))
            known.add((run, key))
        elif step == "r":
            assert turns.remove(run, key) is ((run, key) in known)
            known.discard((run, key))
        elif step == "t":
            first = turns.first(anybody)
            assert (first is not None) is bool(known)
            if first is not None:
                turns.take(first)
                known.remove((first.run, first.key))
        assert len(turns) == len(known)
        assert all(each in turns for each in known)
        assert {key for each, key in known if each == run} == set(turns.keys(run))


async def next_task(bench: Any) -> tuple[dict[str, Any], asyncio.StreamWriter]:
    async with asyncio.timeout(LIMIT):
        request, writer = await bench.worker.tasks.get()
    assert isinstance(request, dict)
    return request, writer


def finish(bench: Any, task: tuple[dict[str, Any], asyncio.StreamWriter]) -> None:
    request, writer = task
    head = {"id": request["id"], "kind": "task_done", "key": "k1", "output": 1}
    writer.write(frames.encode(head))


async def test_what_waits_runs_in_its_turn_also_after_a_restart(
    short_folder: Path, rig: Any
) -> None:
    async with rig.open_bench(short_folder, most_tasks=2) as bench:
        await bench.publish()
        runs = [await bench.start("task", {"n": number}) for number in range(6)]
        asked = [await next_task(bench) for _ in range(2)]
        assert [each[0]["run_id"] for each in asked] == runs[:2]
        assert bench.worker.tasks.empty()
        running = bench.engine.running()
        assert (running.tasks, running.tasks_waiting) == (2, 4)
        # One that ends, and one that is stopped, give their place to the next.
        finish(bench, asked[0])
        assert (await next_task(bench))[0]["run_id"] == runs[2]
        await bench.post(f"/runs/{runs[1]}/events", {"type": "CANCEL"})
        assert (await next_task(bench))[0]["run_id"] == runs[3]
        # One that waits is stopped without ever having run.
        await bench.post(f"/runs/{runs[4]}/events", {"type": "CANCEL"})
        assert bench.engine.running().tasks_waiting == 1
        await bench.eventually(lambda: rig.says(bench, runs[0], "done"))
    async with rig.open_bench(short_folder, most_tasks=2) as bench:
        seen = []
        for _ in range(3):
            task = await next_task(bench)
            assert task[0]["input"] == {"n": runs.index(task[0]["run_id"])}
            seen.append(task[0]["run_id"])
            assert bench.engine.running().tasks <= 2
            finish(bench, task)
        assert sorted(seen) == sorted([runs[2], runs[3], runs[5]])
        for run in seen:
            await bench.eventually(lambda run=run: rig.says(bench, run, "done"))
        running = bench.engine.running()
        assert (running.tasks, running.tasks_waiting) == (0, 0)


async def test_a_run_has_its_share_and_inputs_fit_the_memory(bench: Any) -> None:
    def task(run: str, number: int, size: int = 2) -> Task:
        return Task(
            run=run,
            workflow="task",
            assembly=bench.registry.hash,
            key=f"k{number}",
            machine=(),
            slot="s",
            input="0" * size if size == 1 else f'"{"x" * (size - 2)}"',
        )

    known = {("a", n): task("a", n) for n in range(5)} | {("b", n): task("b", n) for n in range(5)}
    known |= {("c", n): task("c", n, 100) for n in range(3)}
    done: Counter[str] = Counter()

    async def read(run: str, key: str) -> Task:
        return known[run, int(key[1:])]

    async with asyncio.TaskGroup() as group:
        tasks = Tasks(
            group,
            bench.services.publisher._processes,
            lambda run, event: done.update([run]),
            read,
            most=6,
            most_of_run=2,
            most_bytes=110,
        )
        for each in known.values():
            tasks.start(each)
            tasks.start(each)  # it is known already
        # Two of `a`, two of `b`, and one of `c`, whose second does not fit beside the others.
        first = [await next_task(bench) for _ in range(5)]
        assert sorted(each[0]["run_id"] for each in first) == ["a", "a", "b", "b", "c"]
        assert (len(tasks), tasks.waiting) == (5, 8)
        assert bench.worker.tasks.empty()
        finish(bench, next(each for each in first if each[0]["run_id"] == "c"))
        second = await next_task(bench)
        assert second[0]["run_id"] == "c"
        for asked in [*(each for each in first if each[0]["run_id"] != "c"), second]:
            finish(bench, asked)
        for _ in range(len(known) - 6):
            finish(bench, await next_task(bench))
        await bench.eventually(lambda: len(tasks) == tasks.waiting == 0)
    assert done == {"a": 5, "b": 5, "c": 3}
