"""Runs that wait, by the thousand: what they cost in memory, on the disk, at a start and for each event.

The programs are the real ones. The parked runs are rows that one real run was copied to, for the
posts of 100 000 starts would take longer than all that is measured here; each of them is answered
as any run is, which is tried.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import textwrap
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import httpx2

from jr2 import names
from tests.chaos.conftest import Pod
from tests.waiting import wait_for

WORKFLOW = """
    from __future__ import annotations

    from datetime import timedelta

    from jr2 import Context, ExternalEvent, Machine


    class Tick(ExternalEvent):
        \"\"\"One step.\"\"\"


    class Ctx(Context):
        \"\"\"How far it is.\"\"\"

        number: int = 0


    m = Machine("parked", context=Ctx, start=lambda i: Ctx())
    waiting = m.state("waiting", initial=True)
    over = m.final("over")
    waiting.gate(gate="tick")
    waiting.on(Tick, internal=True, assign=lambda c, e: c.set(number=c.number + 1))
    waiting.after(timedelta(days=21), to=over)
    machine = m.build()
"""
DUE = 2_000
"""How many timers are overdue at the start, at most: one run is left that waits."""
EVENTS = 400


@dataclass(frozen=True, slots=True)
class Parked:
    """What a number of parked runs costs."""

    runs: int
    due: int
    """How many of them had an overdue timer at the start."""
    memory: float
    """MiB of the Orchestrator after the load, resident."""
    disk: float
    """MiB of the store."""
    start: float
    """Seconds from the start of the program after a kill -9 to the first answer for a run."""
    fired: float
    """Seconds more until each overdue timer has fired."""
    event: float
    """Milliseconds of one event, the median."""


def multiply(database: Path, run: str, copies: int) -> None:
    """Have so many copies of a parked run, each with its timer, in the store of a stopped program."""
    with contextlib.closing(sqlite3.connect(database)) as db, db:
        tables = {}
        for table, key in (("runs", "id"), ("timers", "run")):
            cursor = db.execute(f"SELECT * FROM {table} WHERE {key} = ?", (run,))
            columns = [each[0] for each in cursor.description]
            tables[table] = (columns, columns.index(key), cursor.fetchall())
        ids = [str(uuid.uuid4()) for _ in range(copies)]
        for table, (columns, at, rows) in tables.items():
            marks = ", ".join("?" * len(columns))
            db.executemany(
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})",
                [(*row[:at], each, *row[at + 1 :]) for row in rows for each in ids],
            )
        assert len(tables["timers"][2]) == 1


def resident(process: int) -> float:
    """Return the MiB of memory that a process has."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(runs: int) -> Parked:
    """Park so many runs, kill the Orchestrator, and measure from its next start on."""
    folder = Path(tempfile.mkdtemp(prefix="jr2-bench-", dir="/var/tmp"))
    pod = Pod(folder)
    database = folder / "state" / names.STATE_DATABASE
    due = min(DUE, runs // 2)
    try:
        pod.start_worker()
        main = pod.start_orchestrator()
        published = pod.publish(pod.assembly({"parked": textwrap.dedent(WORKFLOW)}))
        assert published.status_code == 201, published.text
        first = pod.start_run("parked")
        pod.kill(main)
        multiply(database, first, runs - 1)
        with contextlib.closing(sqlite3.connect(database)) as db, db:
            db.execute(
                "UPDATE timers SET due_at = 1 WHERE run IN"
                " (SELECT run FROM timers WHERE run <> ? LIMIT ?)",
                (first, due),
            )
        disk = sum(each.stat().st_size for each in database.parent.glob("state.db*")) / 2**20

        began = time.perf_counter()
        main = pod.begin_orchestrator()

        def answers() -> bool:
            with contextlib.suppress(httpx2.TransportError):
                return pod.client.get(f"/runs/{first}").status_code == 200
            return False

        wait_for("the first answer", answers)
        start = time.perf_counter() - began

        def all_fired() -> bool:
            with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
                # The first term has an index be read, and not each run.
                query = "SELECT count(*) FROM runs WHERE status <> 'live' AND status = 'done'"
                (count,) = db.execute(query).fetchone()
            return bool(count == due)

        wait_for("the overdue timers", all_fired)
        fired = time.perf_counter() - began - start

        with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
            query = "SELECT id FROM runs WHERE status = 'live' ORDER BY random() LIMIT ?"
            ids = [row[0] for row in db.execute(query, (EVENTS,))]
        took = []
        for each in ids:
            at = time.perf_counter()
            answer = pod.client.post(f"/runs/{each}/gates/tick/events", json={"type": "tick"})
            took.append(time.perf_counter() - at)
            assert answer.status_code == 200, answer.text
        return Parked(
            runs=runs,
            due=due,
            memory=resident(main.pid),
            disk=disk,
            start=start,
            fired=fired,
            event=sorted(took)[len(took) // 2] * 1000,
        )
    finally:
        pod.close()
        shutil.rmtree(folder, ignore_errors=True)
