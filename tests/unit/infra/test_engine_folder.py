"""The folder of a run: private, gone afterwards, and gone after a run that was killed."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

from jr2_infra import private
from jr2_infra.engine.folder import remove_abandoned, run_folder

HOLD = """
import sys, time
from pathlib import Path
from jr2_infra.engine.folder import run_folder
with run_folder(Path(sys.argv[1])) as folder:
    (folder / "checkpoint.json").write_text("half")
    print(folder, flush=True)
    time.sleep(60)
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
