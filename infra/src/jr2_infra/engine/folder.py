"""The folder of one run: in memory, private, and gone when the run is over.

Its name is `jr2-<uid>-<random>`. The run holds a lock on the folder itself, which ends with the
process, however it ends. The next run removes every folder whose lock is free and reads nothing in
it. A folder is made under a name for new ones, and gets its own when it is locked; one that kept
the first name for a minute was left by a run that was killed between the two.

Source: design §5.2, field case 4e.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from jr2.errors import StepFailed

from .. import private
from .run_file import ENV_RUN_FILE, FILE_NAME, read_run_file

_NEW: Final = ".jr2-new-"
_NEW_SECONDS: Final = 60.0
"""Age from which a new folder is not about to be locked any more."""


@contextmanager
def run_folder(root: Path | None = None) -> Iterator[Path]:
    """Give a new folder that only we can enter, and remove it again.

    Args:
        root: where it is made; in memory when it is not given.
    """
    base = private.memory_root() if root is None else root
    remove_abandoned(base)
    # Made under another name first: a folder under the final one has its lock from the start.
    made = Path(tempfile.mkdtemp(prefix=_NEW, dir=base))
    lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = base / f"{_prefix()}{made.name.removeprefix(_NEW)}"
        made.rename(folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def random_of(folder: Path) -> str:
    """Return the random part of a run folder's name, which is the nonce of a plain run."""
    return folder.name.removeprefix(_prefix())


def plain_run(nonce: str) -> dict[str, str]:
    """Return what a plain run tells its steps.

    Args:
        nonce: the random part of the name of its folder.

    Raises:
        StepFailed: there is no such run of ours on this machine any more.
    """
    folder = private.memory_root() / f"{_prefix()}{nonce}"
    try:
        whole = nonce.replace("_", "").isalnum()
        # The folder above is everybody's: a run is one that we made.
        if whole and folder.lstat().st_uid == os.getuid():
            return read_run_file({ENV_RUN_FILE: str(folder / FILE_NAME)})
    except FileNotFoundError:
        pass
    raise StepFailed("the run that this step belongs to is over; nothing is written")


def remove_abandoned(base: Path) -> list[Path]:
    """Remove the folders of runs that were killed; return them.

    Args:
        base: where runs have their folders.
    """
    removed: list[Path] = []
    made = time.time() - _NEW_SECONDS
    stuck = [path for path in base.glob(f"{_NEW}*") if _changed(path) < made]
    for folder in sorted([*base.glob(f"{_prefix()}*"), *stuck]):
        if _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder)
    return removed


def _changed(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except FileNotFoundError:
        # It has its own name by now.
        return time.time()


def _is_abandoned(folder: Path) -> bool:
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if os.fstat(lock).st_uid != os.getuid():
            return False
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return stat.S_ISDIR(folder.lstat().st_mode)


def _prefix() -> str:
    return f"jr2-{os.getuid()}-"
