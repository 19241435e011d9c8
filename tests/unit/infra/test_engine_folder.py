"""The folder of a run: private, gone afterwards, and gone after a run that was killed."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from jr2.errors import StepFailed
from jr2_infra import private
from jr2_infra.engine import folder as folders
from jr2_infra.engine.folder import remove_abandoned, run_folder
from jr2_infra.engine.run_file import FILE_NAME, write_run_file

HOLD = """
import sys, time
from pathlib import Path
from jr2_infra.engine.folder import run_folder
with run_folder(Path(sys.argv[1])) as folder:
    (folder / "checkpoint.json").write_text("half")
    print(folder, flush=True)
    time.sleep(3600)
"""


def test_a_folder_is_private_and_goes(tmp_path: Path) -> None:
    with run_folder(tmp_path) as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text("x")
        assert folder.name.startswith(f"jr2-{os.getuid()}-")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    assert list(tmp_path.iterdir()) == []


def test_a_folder_lies_in_memory_where_that_can_be() -> None:
    with run_folder() as folder:
        assert folder.parent == private.memory_root()


def test_the_folder_of_a_killed_run_is_removed_by_the_next(tmp_path: Path) -> None:
    """4e: also when its checkpoint is half written; nothing in it is read."""
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        assert remove_abandoned(tmp_path) == []
        process.kill()
        process.wait()
    (left / "checkpoint.json").chmod(0)

    with run_folder(tmp_path) as folder:
        assert folder != left
        assert not left.exists()


def test_a_folder_of_a_run_that_was_killed_before_it_had_its_lock_is_removed(
    tmp_path: Path,
) -> None:
    stuck, young, locked = (tmp_path / f".jr2-new-{name}" for name in ("a", "b", "c"))
    for folder in (stuck, young, locked):
        folder.mkdir()
        (folder / "file").touch()
    for folder in (stuck, locked):
        os.utime(folder, (0, 0))
    lock = os.open(locked, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert remove_abandoned(tmp_path) == [stuck]
    finally:
        os.close(lock)
    assert not stuck.exists()
    assert young.exists()


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    prefix = f"jr2-{os.getuid()}-"
    aside = tmp_path / "aside"
    aside.mkdir()
    (aside / "kept").touch()
    (tmp_path / f"{prefix}link").symlink_to(aside)
    (tmp_path / f"{prefix}file").touch()
    (tmp_path / "jr2-99999-other").mkdir()

    assert remove_abandoned(tmp_path) == []
    assert (aside / "kept").exists()


def test_a_plain_run_is_found_by_its_nonce_while_it_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jr2_infra.private.memory_root", lambda: tmp_path)
    with folders.run_folder() as made:
        write_run_file(made / FILE_NAME, {"namespace": "demo"})
        nonce = folders.random_of(made)

        assert folders.plain_run(nonce) == {"namespace": "demo"}

    for gone in (nonce, "preview", "../etc"):
        with pytest.raises(StepFailed, match="the run that this step belongs to is over"):
            folders.plain_run(gone)


def test_a_run_of_somebody_else_is_none_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jr2_infra.private.memory_root", lambda: tmp_path)
    forged = tmp_path / f"jr2-{os.getuid()}-forged"
    forged.mkdir()
    write_run_file(forged / FILE_NAME, {"namespace": "theirs"})
    os.chown(forged, os.getuid() + 1, -1)

    with pytest.raises(StepFailed):
        folders.plain_run("forged")
