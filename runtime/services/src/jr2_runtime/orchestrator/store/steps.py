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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from . import answers, runs
from .answers import Answer, Once
from .rows import Run, Stale
from .runs import Changes

_MOST_ROWS: Final = 32
"""Of one statement. Its text says how many rows there are, and SQLite keeps the last texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
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
    try:
        answers.keep_all(db, [step.once for step in steps if step.once is not None], answer, now)
        _move_all(db, [step.run for step in steps if step.plain], now)
        for step in steps:
            if not step.plain:
                runs.move(db, step.run, now)
            _follow(db, step)
    except (Stale, sqlite3.IntegrityError) as bad:
        raise Apart from bad


def _follow(db: sqlite3.Connection, step: Recorded) -> None:
    runs.follow(db, step.run, step.changes, consumed_task=step.task, consumed_timer=step.timer)


def _move_all(db: sqlite3.Connection, moved: Sequence[Run], now: int) -> None:
    for at in range(0, len(moved), _MOST_ROWS):
        part = moved[at : at + _MOST_ROWS]
        values: list[object] = [now]
        for run in part:
            values += (run.id, run.seq, run.view, run.snapshot)
        rows = ", ".join(["(?, ?, ?, ?)"] * len(part))
        changed = db.execute(
            "UPDATE runs SET seq = new.column2, view = new.column3, snapshot = new.column4,"  # noqa: S608 - marks
            f" updated_at = ? FROM (VALUES {rows}) AS new"
            " WHERE runs.id = new.column1 AND runs.seq = new.column2 - 1 AND runs.status = 'live'",
            values,
        )
        if changed.rowcount != len(part):
            raise Stale("a run moved on")
