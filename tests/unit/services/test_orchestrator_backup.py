"""Backups of the store, and the way back: whole copies, one step, and runs that go on."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import shutil
import sqlite3
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from jr2 import names
from jr2_runtime.orchestrator import program, upkeep
from jr2_runtime.orchestrator.backup import (
    BackupFailed,
    Backups,
    RestoreFailed,
    copies,
    finish,
    prepare,
)
from jr2_runtime.orchestrator.store import schema

pytestmark = pytest.mark.anyio

NOON = 1_796_040_000_000
"""2026-11-30T12:00:00Z in milliseconds."""
NAME = "state-20261130T120000Z.db"


def marked(database: Path, mark: str) -> None:
    """Write a store that says which one it is; its last change is in its log alone."""
    writer = sqlite3.connect(database, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    if writer.execute("PRAGMA user_version").fetchone() == (0,):
        schema.migrate(writer)
    writer.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('mark', ?)", (mark,))
    # A copy of the files is what a kill leaves: the log is not written back to the store.
    for suffix in ("", "-wal"):
        shutil.copy(f"{database}{suffix}", f"{database}{suffix}.kept")
    writer.close()
    for suffix in ("", "-wal"):
        os.replace(f"{database}{suffix}.kept", f"{database}{suffix}")


def mark_of(database: Path) -> str:
    with contextlib.closing(sqlite3.connect(database)) as store:
        (mark,) = store.execute("SELECT value FROM meta WHERE key = 'mark'").fetchone()
    return str(mark)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / names.STATE_DATABASE


@pytest.fixture
def backups(tmp_path: Path, database: Path) -> Backups:
    return Backups(tmp_path, database, kept=2)


def test_a_backup_is_whole_and_the_oldest_go(
    backups: Backups, database: Path, tmp_path: Path
) -> None:
    assert backups.names() == []
    assert backups.newest_at() is None
    made = []
    for number in range(3):
        marked(database, f"mark {number}")
        made.append(backups.make(NOON + number * 1000))
    assert made[0] == NAME
    assert backups.names() == [made[2], made[1]]
    assert backups.newest_at() == NOON + 2000
    assert [mark_of(backups.path(name)) for name in backups.names()] == ["mark 2", "mark 1"]
    assert sorted(each.name for each in (tmp_path / "backups").iterdir()) == made[1:]
    with pytest.raises(BackupFailed, match=f'no backup "{NAME}" .backups: {made[2]}, {made[1]}'):
        backups.path(NAME)


def test_backups_take_their_share_of_the_volume_and_the_newest_stays(
    backups: Backups, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked(database, "x")
    monkeypatch.setattr(copies, "SHARE", 0.0)
    for number in range(2):
        newest = backups.make(NOON + number * 1000)
        assert backups.names() == [newest]


def test_a_backup_that_was_cut_is_none_and_goes(backups: Backups, database: Path) -> None:
    marked(database, "x")
    name = backups.make(NOON)
    part = backups.path(name).with_name("state-20261130T130000Z.db.part")
    part.write_bytes(b"half")
    assert backups.names() == [name]
    backups.clean()
    assert not part.exists()


def test_no_backup_is_begun_that_would_take_the_room_of_the_ballast(
    backups: Backups, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked(database, "x")
    kept = backups.make(NOON)
    monkeypatch.setattr(copies, "BALLAST", 2**60)
    with pytest.raises(BackupFailed, match="the volume has"):
        backups.make(NOON + 1000)
    assert backups.names() == [kept]
    assert list(backups.path(kept).parent.iterdir()) == [backups.path(kept)]


def test_a_store_that_is_not_there_gives_no_backup(backups: Backups, tmp_path: Path) -> None:
    with pytest.raises(BackupFailed):
        backups.make(NOON)
    assert list((tmp_path / "backups").iterdir()) == []


def test_a_restore_is_done_once_and_what_was_there_is_kept_aside(
    backups: Backups, database: Path
) -> None:
    marked(database, "then")
    name = backups.make(NOON)
    marked(database, "now")

    assert prepare(backups, database, name)
    assert mark_of(database) == "now"
    assert finish(database) == name
    assert mark_of(database) == "then"
    assert mark_of(Path(f"{database}.before-restore")) == "now"

    marked(database, "later")
    assert not prepare(backups, database, name)
    assert finish(database) is None
    assert mark_of(database) == "later"


@pytest.mark.parametrize("moved", [0, 1, 2, 3])
def test_a_restore_that_was_killed_between_two_steps_is_finished_by_the_next_start(
    backups: Backups, database: Path, moved: int
) -> None:
    marked(database, "then")
    name = backups.make(NOON)
    marked(database, "now")
    Path(f"{database}-shm").write_bytes(b"")
    prepare(backups, database, name)
    for suffix in ("-wal", "-shm", "")[:moved]:
        Path(f"{database}{suffix}").rename(f"{database}.before-restore{suffix}")

    assert finish(database) == name
    assert mark_of(database) == "then"
    assert mark_of(Path(f"{database}.before-restore")) == "now"


def test_a_store_that_cannot_be_read_is_restored(backups: Backups, database: Path) -> None:
    marked(database, "then")
    name = backups.make(NOON)
    database.write_bytes(b"no store at all" * 1000)
    assert prepare(backups, database, name)
    finish(database)
    assert mark_of(database) == "then"


@pytest.mark.parametrize("what", ["unknown", "damaged", "no store", "later"])
def test_a_backup_that_cannot_be_restored_leaves_the_store_alone(
    backups: Backups, database: Path, what: str
) -> None:
    marked(database, "now")
    name = backups.make(NOON)
    path = backups.path(name)
    if what == "damaged":
        content = bytearray(path.read_bytes())
        content[4096:] = bytes(len(content) - 4096)
        path.write_bytes(content)
    elif what == "no store":
        path.write_bytes(b"text")
    elif what == "later":
        with contextlib.closing(sqlite3.connect(path)) as copy:
            copy.execute("PRAGMA user_version = 1000")
    else:
        name = "state-20200101T000000Z.db"
    before = sorted(each.name for each in database.parent.iterdir())
    with pytest.raises(RestoreFailed):
        prepare(backups, database, name)
    assert sorted(each.name for each in database.parent.iterdir()) == before
    assert mark_of(database) == "now"
    assert finish(database) is None


async def test_the_runs_of_a_restored_store_go_on(short_folder: Path, rig: ModuleType) -> None:
    state = short_folder / "state"
    database = state / names.STATE_DATABASE
    backups = Backups(state, database)
    async with rig.open_bench(short_folder) as bench:
        await bench.publish()
        run = await bench.start("gate")
        timed = await bench.start("timer", {"delay": 60})
        name = await asyncio.to_thread(backups.make, NOON)
        await bench.post(f"/runs/{run}/gates/review/events", {"type": "go"})
        later = await bench.start("gate")
        assert (await bench.status(run))["status"] == "done"

    program.restore(backups, database, name)

    async with rig.open_bench(short_folder) as bench:
        live = {each["runId"] for each in (await bench.get("/runs")).json()}
        assert live == {run, timed}
        assert (await bench.get(f"/runs/{later}")).status_code == 404
        answer = await bench.post(f"/runs/{run}/gates/review/events", {"type": "go"})
        assert answer.status_code == 200
        bench.clock.advance(61)
        await bench.eventually(lambda: rig.says(bench, timed, "done"))
    program.restore(backups, database, name)
    async with rig.open_bench(short_folder) as bench:
        assert (await bench.status(run))["status"] == "done"


async def test_a_backup_is_made_when_the_newest_is_six_hours_old(
    bench: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    state = bench.folder / "state"
    backups = Backups(state, state / names.STATE_DATABASE)
    loop = asyncio.ensure_future(upkeep.back_up(backups, bench.clock))
    await bench.eventually(lambda: len(backups.names()) == 1)
    for _ in range(5):
        bench.clock.advance(3600)
    bench.clock.advance(3500)
    await asyncio.sleep(0)
    assert len(backups.names()) == 1
    bench.clock.advance(200)
    await bench.eventually(lambda: len(backups.names()) == 2)

    with monkeypatch.context() as patched:
        patched.setattr(copies, "BALLAST", 2**60)
        bench.clock.advance(6 * 3600 + 1)
        await bench.eventually(lambda: "no backup of the store was made" in caplog.messages)
    bench.clock.advance(3601)
    await bench.eventually(lambda: len(backups.names()) == 3)
    loop.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await loop


@pytest.fixture
def in_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Any:
    """Run `jr2-orchestrator` as a person in the pod does; give its code and what it said."""
    monkeypatch.setenv("JR2_STATE_PATH", str(tmp_path))

    def call(*arguments: str, stdin: bytes = b"") -> tuple[int | str | None, bytes, bytes]:
        capfdbinary.readouterr()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            try:
                code: int | str | None = program.run(list(arguments))
            except SystemExit as ended:
                code = ended.code
        sys.stdout.flush()
        said = capfdbinary.readouterr()
        return code, said.out, said.err

    return call


def test_a_person_lists_makes_reads_and_writes_backups(
    in_pod: Any, backups: Backups, database: Path
) -> None:
    marked(database, "x")
    made = in_pod("backup", "now")[1].decode().strip()
    assert backups.names() == [made]
    assert in_pod("backup", "list") == (0, f"{made}\n".encode(), b"")
    content = in_pod("backup", "read", made)[1]
    assert content == backups.path(made).read_bytes()

    backups.path(made).unlink()
    assert in_pod("backup", "write", made, stdin=content) == (0, f"{made}\n".encode(), b"")
    assert mark_of(backups.path(made)) == "x"
    for arguments, stdin, said in (
        (("read", "../state.db"), b"", b"there is no backup"),
        (("write", "../x"), content, b"is no name of a backup"),
        (("write", NAME), content[:5000], b"error: "),
    ):
        code, _, complaint = in_pod("backup", *arguments, stdin=stdin)
        assert code == 1
        assert said in complaint
    assert in_pod("backup", "read")[0] == 2
    assert backups.names() == [made]
