"""Whose fault it is when a process ends under several tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jr2_runtime.orchestrator.engine.cells import ALONE, LOSSES, Cell, Cells

A = "a" * 64


@dataclass(eq=False)
class FakeProcess:
    assembly: str


@dataclass
class FakeProcesses:
    running: list[FakeProcess] = field(default_factory=list)

    def another(self, assembly: str) -> FakeProcess:
        self.running.append(FakeProcess(assembly))
        return self.running[-1]

    def end(self, process: FakeProcess) -> None:
        self.running.remove(process)


def cells() -> tuple[Cells, FakeProcesses]:
    processes = FakeProcesses()
    return Cells(processes), processes  # type: ignore[arg-type]  # the far side


def task(number: int) -> tuple[str, str]:
    return (f"run-{number}", "k")


@given(st.integers(1, 60), st.data())
def test_only_the_culprit_fails_and_soon(count: int, data: Any) -> None:
    made, processes = cells()
    tasks = [task(number) for number in range(count)]
    for each in tasks:
        made.of(each, A)
    culprit = data.draw(st.sampled_from(tasks))
    ends = 0
    failed: list[tuple[str, str]] = []
    while not failed:
        ends += 1
        cell = made.of(culprit, A)
        before = cell.ends
        # Every task of the cell sees the same end, in any order.
        order = data.draw(st.permutations(list(cell.tasks)))
        failed = [each for each in order if made.ended(cell, before)]
        assert ends <= math.ceil(math.log2(count)) + ALONE
    assert failed == [culprit]
    made.leave(culprit)
    for each in tasks:
        if each != culprit:
            assert each in made.of(each, A).tasks
            made.leave(each)
    # What is left is one process for new tasks at most.
    assert len(processes.running) <= 1


def test_new_tasks_join_no_suspect() -> None:
    made, _ = cells()
    first, second = made.of(task(1), A), made.of(task(2), A)
    assert first is second
    assert not made.ended(first, first.ends)
    fresh = made.of(task(3), A)
    assert fresh not in (made.of(task(1), A), made.of(task(2), A))
    assert not fresh.suspect


def test_new_tasks_do_not_join_one_that_was_alone_when_its_process_ended() -> None:
    made, processes = cells()
    cell = made.of(task(1), A)
    assert not made.ended(cell, cell.ends)
    assert made.of(task(2), A) is not cell
    # It leaves before its second end, and nobody inherits the first.
    made.leave(task(1))
    assert len(processes.running) == 1
    other = made.of(task(3), A)
    assert other is made.of(task(2), A)
    assert not made.ended(other, other.ends)


def test_the_whole_worker_going_blames_nobody_until_it_went_too_often() -> None:
    made, processes = cells()
    cell: Cell = made.of(task(1), A)
    assert [made.worker_went(task(1)) for _ in range(LOSSES)] == [False] * (LOSSES - 1) + [True]
    assert made.of(task(1), A) is cell
    assert len(processes.running) == 1
    made.leave(task(1))
    made.of(task(1), A)
    assert not made.worker_went(task(1))


@pytest.mark.parametrize("suspect", [False, True])
def test_a_process_of_suspects_ends_with_its_last_task(suspect: bool) -> None:
    made, processes = cells()
    cell = made.of(task(1), A)
    made.of(task(2), A)
    if suspect:
        made.ended(cell, cell.ends)
    for number in (1, 2):
        made.leave(task(number))
    assert len(processes.running) == (0 if suspect else 1)
