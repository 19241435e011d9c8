"""A store of each earlier schema opens, becomes one of the last, and its runs go on.

`schemas/NNNN.sql` is a store as the program wrote it when its tables were at that number: an
Assembly, a run at a Gate, one with a task, one with a timer, and one that was cancelled. A new
migration needs a new file; an old one is never changed.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from pathlib import Path
from types import ModuleType

import pytest

from jr2 import frames, names
from jr2_runtime.orchestrator.store import runs, schema

pytestmark = pytest.mark.anyio

SCHEMAS = Path(__file__).parent / "schemas"
STORES = sorted(SCHEMAS.glob("*.sql"))
HASH = "a" * 64
RUNS = [f"00000000-0000-4000-8000-00000000000{number}" for number in range(1, 5)]


def tables(db: sqlite3.Connection) -> set[str]:
    found = db.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return {re.sub(r"\s+", " ", row[0]) for row in found}


def test_each_migration_has_a_store_that_was_written_under_it() -> None:
    assert [store.stem for store in STORES] == [
        f"{number:04}" for number in range(1, len(schema.MIGRATIONS) + 1)
    ]


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.stem)
def test_the_migrations_up_to_a_number_make_the_tables_of_then(store: Path) -> None:
    number = int(store.stem)
    with (
        contextlib.closing(sqlite3.connect(":memory:")) as then,
        contextlib.closing(sqlite3.connect(":memory:")) as now,
    ):
        then.executescript(store.read_text())
        for statements in schema.MIGRATIONS[:number]:
            for statement in statements:
                now.execute(statement)
        assert tables(now) == tables(then)


def lay(store: Path, state: Path) -> None:
    """Put a store where the program looks for its own."""
    (state / names.ASSEMBLIES_DIR / HASH).mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(state / names.STATE_DATABASE)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(store.read_text())
        # The store is of an earlier schema, and its Assembly of this Kit version.
        with db:
            db.execute("UPDATE assemblies SET kit_version = ?", (names.KIT_VERSION,))


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.stem)
async def test_the_runs_of_an_earlier_store_go_on(
    store: Path, short_folder: Path, rig: ModuleType
) -> None:
    lay(store, short_folder / "state")
    async with rig.open_bench(short_folder) as bench:
        (version,) = await bench.store.read(lambda db: db.execute("PRAGMA user_version").fetchone())
        assert version == len(schema.MIGRATIONS)
        assert await bench.store.read(runs.stuck) == []
        live = {run["runId"] for run in (await bench.get("/runs")).json()}
        assert live <= set(RUNS[:3])

        answer = await bench.post(f"/runs/{RUNS[0]}/gates/review/events", {"type": "go"})
        assert answer.status_code == 200, answer.text
        request, writer = await bench.worker.tasks.get()
        assert (request["run_id"], request["key"], request["input"]) == (RUNS[1], "k1", {"n": 1})
        done = {"id": request["id"], "kind": "task_done", "key": "k1", "output": 1}
        writer.write(frames.encode(done))
        for run in RUNS[:3]:
            await bench.eventually(lambda run=run: rig.says(bench, run, "done"))
        assert await bench.store.read(runs.stuck) == []
        assert (await bench.status(RUNS[3]))["status"] == "cancelled"
