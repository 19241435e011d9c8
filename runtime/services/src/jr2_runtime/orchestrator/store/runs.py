"""The statements about runs, their tasks and their timers.

Each function is one piece of a transaction. Those that change a run name the sequence number that
they start from, and raise `Stale` when the row has moved on: so an event is consumed at most once,
whatever was retried.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .rows import Run, Settled, Stale, Task, Timer

_SHOWN = "id, instance_id, workflow, assembly, shape, status, reason, seq, gates, view"
SETTLED_FOR_MS: Final = 7 * 24 * 3600 * 1000
"""A settled run is kept this long after its end."""
SWEPT_AT_ONCE: Final = 500
"""How many runs one transaction of a sweep removes, so that it does not hold up events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What one step changed besides the snapshot; keys are unique within the run."""

    started: tuple[Task, ...] = ()
    stopped: tuple[str, ...] = ()
    armed: tuple[Timer, ...] = ()
    disarmed: tuple[str, ...] = ()


NOTHING: Final = Changes()
"""A step that did nothing else."""


def _run(row: Sequence[object]) -> Run:
    return Run(
        id=row[0],  # type: ignore[arg-type]  # STRICT tables give what they declare
        instance_id=row[1],  # type: ignore[arg-type]
        workflow=row[2],  # type: ignore[arg-type]
        assembly=row[3],  # type: ignore[arg-type]
        shape=row[4],  # type: ignore[arg-type]
        status=row[5],  # type: ignore[arg-type]
        reason=row[6],  # type: ignore[arg-type]
        seq=row[7],  # type: ignore[arg-type]
        gates=row[8],  # type: ignore[arg-type]
        view=row[9],  # type: ignore[arg-type]
        snapshot=row[10] if len(row) > 10 else b"",  # type: ignore[arg-type]
    )


def insert(db: sqlite3.Connection, run: Run, changes: Changes, now: int) -> None:
    """Record a new run after its first step.

    Raises:
        Stale: its Assembly is not held any more.
    """
    if db.execute("SELECT 1 FROM assemblies WHERE hash = ?", (run.assembly,)).fetchone() is None:
        raise Stale(f"the Assembly {run.assembly[:12]} is not held any more")
    db.execute(
        f"INSERT INTO runs ({_SHOWN}, started_at, updated_at, snapshot)"  # noqa: S608
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            run.id,
            run.instance_id,
            run.workflow,
            run.assembly,
            run.shape,
            run.status,
            run.reason,
            run.seq,
            run.gates,
            run.view,
            now,
            now,
            run.snapshot,
        ),
    )
    _apply(db, run, changes)


def commit_step(
    db: sqlite3.Connection,
    run: Run,
    changes: Changes,
    now: int,
    *,
    consumed_task: str | None = None,
    consumed_timer: str | None = None,
) -> None:
    """Record one step of a run: `run` is the row after it, with the next sequence number.

    Raises:
        Stale: the run settled or moved on, or the task or timer was consumed before.
    """
    move(db, run, now)
    follow(db, run, changes, consumed_task=consumed_task, consumed_timer=consumed_timer)


def move(db: sqlite3.Connection, run: Run, now: int) -> None:
    """Record where a run stands after a step.

    Raises:
        Stale: the run settled or moved on.
    """
    changed = db.execute(
        "UPDATE runs SET status = ?, reason = ?, seq = ?, view = ?, snapshot = ?, updated_at = ?,"
        " gates = ? WHERE id = ? AND seq = ? AND status = 'live'",
        (
            run.status,
            run.reason,
            run.seq,
            run.view,
            run.snapshot,
            now,
            run.gates,
            run.id,
            run.seq - 1,
        ),
    )
    if changed.rowcount != 1:
        raise Stale(f"run {run.id} moved on")


def follow(
    db: sqlite3.Connection,
    run: Run,
    changes: Changes,
    *,
    consumed_task: str | None,
    consumed_timer: str | None,
) -> None:
    """Record what else a step did: what it consumed, and what it started, stopped and armed.

    Raises:
        Stale: the task or timer was consumed before.
    """
    for table, key in (("tasks", consumed_task), ("timers", consumed_timer)):
        if key is not None and not _delete(db, table, run.id, key):
            raise Stale(f"run {run.id} has consumed {key} already")
    if run.status != "live" or changes != NOTHING:
        _apply(db, run, changes)


def settle(
    db: sqlite3.Connection, run: str, status: Settled, reason: str | None, now: int
) -> Run | None:
    """End a live run where it stands, with its tasks and timers; `None` when it is not live."""
    changed = db.execute(
        "UPDATE runs SET status = ?, reason = ?, seq = seq + 1, updated_at = ?"  # noqa: S608
        " WHERE id = ? AND status = 'live' RETURNING " + _SHOWN,
        (status, reason, now, run),
    ).fetchall()
    if not changed:
        return None
    settled = _run(changed[0])
    _apply(db, settled, NOTHING)
    return settled


def consume(db: sqlite3.Connection, run: str, *, task: str | None, timer: str | None) -> None:
    """Forget a task or a timer whose event the Machine has no use for."""
    for table, key in (("tasks", task), ("timers", timer)):
        if key is not None:
            _delete(db, table, run, key)


def _delete(db: sqlite3.Connection, table: str, run: str, key: str) -> bool:
    statement = f"DELETE FROM {table} WHERE run = ? AND key = ?"  # noqa: S608 - a constant
    return db.execute(statement, (run, key)).rowcount == 1


def _apply(db: sqlite3.Connection, run: Run, changes: Changes) -> None:
    if run.status != "live":
        db.execute("DELETE FROM tasks WHERE run = ?", (run.id,))
        db.execute("DELETE FROM timers WHERE run = ?", (run.id,))
        return
    for key in changes.stopped:
        _delete(db, "tasks", run.id, key)
    for key in changes.disarmed:
        _delete(db, "timers", run.id, key)
    begin(db, run.id, changes)


def begin(db: sqlite3.Connection, run: str, changes: Changes) -> None:
    """Record the tasks that a step started and the timers that it armed."""
    if changes.started:
        db.executemany(
            "INSERT OR REPLACE INTO tasks (run, key, machine, slot, input) VALUES (?, ?, ?, ?, ?)",
            [
                (run, task.key, json.dumps(task.machine), task.slot, task.input)
                for task in changes.started
            ],
        )
    if changes.armed:
        db.executemany(
            "INSERT OR REPLACE INTO timers (run, key, due_at) VALUES (?, ?, ?)",
            [(run, timer.key, timer.due_at) for timer in changes.armed],
        )


def read(db: sqlite3.Connection, run: str) -> Run | None:
    """Return one run with its snapshot."""
    row = db.execute(
        f"SELECT {_SHOWN}, snapshot FROM runs WHERE id = ?",  # noqa: S608 - a constant
        (run,),
    ).fetchone()
    return None if row is None else _run(row)


def read_some(
    db: sqlite3.Connection, runs: Sequence[str], most: int
) -> tuple[dict[str, Run], bool]:
    """Return those of some runs that are there, each with its snapshot, by id; and whether all are.

    Args:
        db: the connection.
        runs: their ids.
        most: no further one is read when those that were have so many bytes.
    """
    marks = ", ".join("?" * len(runs))
    rows = db.execute(
        f"SELECT {_SHOWN}, snapshot FROM runs WHERE id IN ({marks})",  # noqa: S608 - marks
        tuple(runs),
    )
    found: dict[str, Run] = {}
    size = 0
    for row in rows:
        if size >= most:
            rows.close()
            return found, False
        run = found[row[0]] = _run(row)
        size += len(run.view) + len(run.snapshot)
    return found, True


def assembly_of(db: sqlite3.Connection, runs: Sequence[str]) -> dict[str, str]:
    """Return the Assembly that each of some runs holds, of those that are there, by id."""
    marks = ", ".join("?" * len(runs))
    return dict(
        db.execute(f"SELECT id, assembly FROM runs WHERE id IN ({marks})", tuple(runs))  # noqa: S608 - marks
    )


def read_shown(db: sqlite3.Connection, run: str) -> Run | None:
    """Return one run without its snapshot."""
    row = db.execute(f"SELECT {_SHOWN} FROM runs WHERE id = ?", (run,)).fetchone()  # noqa: S608
    return None if row is None else _run(row)


def live_ids(db: sqlite3.Connection) -> list[str]:
    """Return the ids of the live runs in the order of their start."""
    rows = db.execute("SELECT id FROM runs WHERE status = 'live' ORDER BY started_at, id")
    return [row[0] for row in rows]


def observed(db: sqlite3.Connection, workflow: str) -> list[Run]:
    """Return the live runs of a Workflow in the order of their start, as anybody may see them.

    Their views have a value and children alone: the contexts of many runs would not fit the memory.
    """
    rows = db.execute(
        "SELECT id, instance_id, workflow, assembly, shape, status, reason, seq, gates,"
        " CASE WHEN json_valid(view) THEN json_object('value', json(ifnull(view -> '$.value',"
        " 'null')), 'children', json(ifnull(view -> '$.children', '[]'))) ELSE view END"
        " FROM runs WHERE status = 'live' AND workflow = ? ORDER BY started_at, id",
        (workflow,),
    )
    return [_run(row) for row in rows]


def by_prefix(db: sqlite3.Connection, prefix: str, limit: int) -> list[str]:
    """Return up to `limit` run ids, live or settled, that start with `prefix`, sorted.

    A run id is a UUID in lower case, so the range from the prefix to the prefix with the highest
    character behind it holds them all, and nothing in the prefix is a pattern.
    """
    rows = db.execute(
        "SELECT id FROM runs WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
        (prefix, prefix + "\U0010ffff", limit),
    )
    return [row[0] for row in rows]


def held_by(db: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the ids of the live runs of each Assembly that has some."""
    held: dict[str, list[str]] = {}
    for assembly, run in db.execute(
        "SELECT assembly, id FROM runs WHERE status = 'live' ORDER BY started_at, id"
    ):
        held.setdefault(assembly, []).append(run)
    return held


NO_NEXT_ACTION: Final = "no next action"
"""Why a run is stuck: no Gate of it is open, it has no task, and no timer will fire."""
_STUCK: Final = (
    "SELECT r.id FROM runs r WHERE r.status = 'live' AND r.gates = 0"
    " AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.run = r.id)"
    " AND NOT EXISTS (SELECT 1 FROM timers t WHERE t.run = r.id)"
)


def stuck(db: sqlite3.Connection) -> list[str]:
    """Return the live runs that nothing will ever move: no open Gate, no task, no timer.

    After each commit a live run has one of the three, unless its Machine rests in a state that
    waits for nothing. So this list is empty whatever was killed, or an author sees why a run stands.
    """
    return [row[0] for row in db.execute(f"{_STUCK} ORDER BY r.id")]


def is_stuck(db: sqlite3.Connection, run: str) -> bool:
    """Whether nothing will ever move a run."""
    return db.execute(f"{_STUCK} AND r.id = ?", (run,)).fetchone() is not None


def shapes(db: sqlite3.Connection, assembly: str) -> list[tuple[str, str]]:
    """Return each Workflow and shape under which live runs of an Assembly were saved.

    One step in the index for each, so that a start does not take longer with the number of runs.
    """
    found: list[tuple[str, str]] = []
    last: tuple[str, str] | None = ("", "")
    while last is not None:
        last = _next_shape(db, assembly, *last)
        if last is not None:
            found.append(last)
    return found


def _next_shape(
    db: sqlite3.Connection, assembly: str, workflow: str, shape: str
) -> tuple[str, str] | None:
    """Return the next shape of the same Workflow, else the first one of the next Workflow."""
    for beyond, values in (
        ("workflow = ? AND shape > ?", (workflow, shape)),
        ("workflow > ?", (workflow,)),
    ):
        row = db.execute(
            "SELECT workflow, shape FROM runs WHERE assembly = ? AND status = 'live'"  # noqa: S608
            f" AND {beyond} ORDER BY workflow, shape LIMIT 1",
            (assembly, *values),
        ).fetchone()
        if row is not None:
            return row[0], row[1]
    return None


def settle_shape(
    db: sqlite3.Connection,
    assembly: str,
    shape: tuple[str, str],
    status: Settled,
    reason: str,
    now: int,
) -> list[Run]:
    """End every live run of an Assembly that was saved under a Workflow and shape."""
    rows = db.execute(
        "SELECT id FROM runs WHERE assembly = ? AND workflow = ? AND shape = ? AND status = 'live'",
        (assembly, *shape),
    ).fetchall()
    settled = [settle(db, row[0], status, reason, now) for row in rows]
    return [run for run in settled if run is not None]


def unfinished(db: sqlite3.Connection, assembly: str) -> list[tuple[str, str, int]]:
    """Return run, key and bytes of the input of every task of the live runs of an Assembly."""
    return db.execute(
        # The tasks first: there are few of them, and many runs.
        "SELECT t.run, t.key, length(t.input) FROM tasks t"
        " CROSS JOIN runs r ON r.id = t.run WHERE r.assembly = ? AND r.status = 'live'",
        (assembly,),
    ).fetchall()


def read_task(db: sqlite3.Connection, run: str, key: str) -> Task | None:
    """Return one task of a live run; `None` when it is over."""
    row = db.execute(
        "SELECT t.machine, t.slot, t.input, r.workflow, r.assembly FROM tasks t"
        " JOIN runs r ON r.id = t.run WHERE t.run = ? AND t.key = ? AND r.status = 'live'",
        (run, key),
    ).fetchone()
    if row is None:
        return None
    return Task(
        run=run,
        key=key,
        machine=_path(row[0]),
        slot=row[1],
        input=row[2],
        workflow=row[3],
        assembly=row[4],
    )


def _path(text: str) -> tuple[str, ...]:
    """Return the path of a Machine; one that a damaged disk has changed leads to no Machine."""
    try:
        path = json.loads(text)
    except ValueError:
        path = None
    return tuple(map(str, path)) if isinstance(path, list) else (text,)


def due(
    db: sqlite3.Connection, now: int, kit_version: str, limit: int
) -> tuple[list[Timer], int | None]:
    """Return the timers that are due, most overdue first, and the next due time after `now`.

    Timers of runs whose Assembly this program cannot load are left alone.
    """
    rows = db.execute(
        "SELECT t.run, t.key, t.due_at FROM timers t JOIN runs r ON r.id = t.run"
        " JOIN assemblies a ON a.hash = r.assembly"
        " WHERE t.due_at <= ? AND a.kit_version = ? ORDER BY t.due_at LIMIT ?",
        (now, kit_version, limit),
    )
    timers = [Timer(run=row[0], key=row[1], due_at=row[2]) for row in rows]
    (following,) = db.execute("SELECT min(due_at) FROM timers WHERE due_at > ?", (now,)).fetchone()
    return timers, following


def sweep(db: sqlite3.Connection, now: int) -> int:
    """Delete up to `SWEPT_AT_ONCE` runs that settled more than seven days ago; return how many."""
    return db.execute(
        "DELETE FROM runs WHERE id IN"
        " (SELECT id FROM runs WHERE status <> 'live' AND updated_at < ? LIMIT ?)",
        (now - SETTLED_FOR_MS, SWEPT_AT_ONCE),
    ).rowcount
