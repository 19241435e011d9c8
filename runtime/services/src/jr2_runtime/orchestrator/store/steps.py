"""The statements that record steps, many runs in one statement.

An event costs little more than its row this way: SQLite reads a statement once for all of them, and
the thread of the store gives the interpreter away once. A step whose run stays live, with as many
open Gates as before, touches no index.

Steps are recorded together or not at all. Which of them does not fit is found by recording each
alone, which its caller does then: that seldom happens.

Source: design §4.3.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from . import answers, runs
from .answers import Answer, Once
from .rows import Run, Stale
from .runs import NOTHING, Changes

T = TypeVar("T")
_MOST_ROWS: Final = 32
"""Of one statement. Its text says how many rows there are, and SQLite keeps the last texts."""


class Recorded(NamedTuple):
    """One step as it is recorded, with the event that it consumed."""

    run: Run
    """The row after the step, with the next sequence number."""
    changes: Changes
    plain: bool
    """Whether the run stays live and has as many open Gates as before."""
    task: str | None = None
    """The key of the task whose result was consumed."""
    timer: str | None = None
    """The key of the timer that was consumed."""
    once: Once | None = None
    """The key of the request that posted the event."""


class Apart(Exception):
    """The steps cannot be recorded together; the transaction changed nothing."""


def record(db: sqlite3.Connection, steps: Sequence[Recorded], answer: Answer, now: int) -> None:
    """Record steps of different runs.

    Args:
        db: in a transaction.
        steps: no run has two of them.
        answer: what the requests that posted the events are answered.
        now: milliseconds since the epoch.

    Raises:
        Stale, Repeated, OtherRequest: of the only step.
        Apart: one of several steps does not fit.
    """
    if len(steps) == 1:
        answers.keep(db, steps[0].once, answer, now)
        runs.move(db, steps[0].run, now)
        _follow(db, steps[0])
        return
    ended = [step.run.id for step in steps if step.run.status != "live"]
    live = [step for step in steps if step.run.status == "live" and step.changes is not NOTHING]
    try:
        answers.keep_all(db, [step.once for step in steps if step.once is not None], answer, now)
        plain = [step.run for step in steps if step.plain]
        _move_all(db, _PLAIN, [(run.id, run.seq, run.view, run.snapshot) for run in plain], now)
        other = [step.run for step in steps if not step.plain]
        _move_all(
            db,
            _OTHER,
            [(run.id, run.seq, run.view, run.snapshot, run.status, run.gates) for run in other],
            now,
        )
        consumed = [(step.run.id, step.task) for step in steps if step.task is not None]
        if _delete_all(db, "tasks", consumed) != len(consumed):
            raise Stale("a task was consumed before")
        fired = [(step.run.id, step.timer) for step in steps if step.timer is not None]
        if _delete_all(db, "timers", fired) != len(fired):
            raise Stale("a timer was consumed before")
    except (Stale, sqlite3.IntegrityError) as bad:
        raise Apart from bad
    for table in ("tasks", "timers"):
        for part in _parts(ended):
            marks = ", ".join("?" * len(part))
            db.execute(f"DELETE FROM {table} WHERE run IN ({marks})", part)  # noqa: S608 - marks
    _delete_all(db, "tasks", [(step.run.id, key) for step in live for key in step.changes.stopped])
    _delete_all(
        db, "timers", [(step.run.id, key) for step in live for key in step.changes.disarmed]
    )
    for step in live:
        runs.begin(db, step.run.id, step.changes)


def _follow(db: sqlite3.Connection, step: Recorded) -> None:
    runs.follow(db, step.run, step.changes, consumed_task=step.task, consumed_timer=step.timer)


_PLAIN: Final = "seq = new.column2, view = new.column3, snapshot = new.column4"
_OTHER: Final = f"{_PLAIN}, reason = NULL, status = new.column5, gates = new.column6"


def _move_all(
    db: sqlite3.Connection, columns: str, moved: Sequence[tuple[object, ...]], now: int
) -> None:
    """Move runs on by a step.

    Args:
        db: in a transaction.
        columns: what is set, from the columns of `new`.
        moved: a row of `new` for each run; its first two columns are the id and the new number.
        now: milliseconds since the epoch.
    """
    for part in _parts(moved):
        row = f"({', '.join('?' * len(part[0]))})"
        rows = ", ".join([row] * len(part))
        values = [now, *chain.from_iterable(part)]
        changed = db.execute(
            f"UPDATE runs SET {columns}, updated_at = ? FROM (VALUES {rows}) AS new"  # noqa: S608 - constants
            " WHERE runs.id = new.column1 AND runs.seq = new.column2 - 1 AND runs.status = 'live'",
            values,
        )
        if changed.rowcount != len(part):
            raise Stale("a run moved on")


def _delete_all(db: sqlite3.Connection, table: str, keys: Sequence[tuple[str, str]]) -> int:
    """Delete rows by run and key; return how many were there."""
    deleted = 0
    for part in _parts(keys):
        # As terms of OR each is looked up; in a list of pairs SQLite would read the whole table.
        terms = " OR ".join(["(run = ? AND key = ?)"] * len(part))
        deleted += db.execute(
            f"DELETE FROM {table} WHERE {terms}",  # noqa: S608 - constants
            [value for pair in part for value in pair],
        ).rowcount
    return deleted


def _parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    for at in range(0, len(rows), _MOST_ROWS):
        yield rows[at : at + _MOST_ROWS]
