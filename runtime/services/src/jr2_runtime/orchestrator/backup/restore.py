"""To go back to a backup: at the next start, once, and in one step.

A checked copy of the backup is made beside the store under another name; the rename of that copy is
the moment at which the restore is decided. From then on each start finishes it, whatever was killed
in between: the store that was there is moved aside with its log, and the copy takes its place. The
copy says which backup it is, so a start that is told of the same backup again does nothing.

Source: design §4.3, ADR-0143.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path
from typing import Final

from ..disk import sync
from ..store.schema import MIGRATIONS
from .copies import BackupFailed, Backups, check

RESTORED: Final = "restored"
"""The key of `meta` that names the backup which the store was restored from."""
_READY: Final = ".restoring"
_PART: Final = ".restoring-part"
ASIDE: Final = ".before-restore"
_LOGS: Final = ("-wal", "-shm")


class RestoreFailed(Exception):
    """The backup cannot be restored; the store that is there was not touched."""


def prepare(backups: Backups, database: Path, name: str) -> bool:
    """Decide a restore, unless the store is restored from that backup already.

    Args:
        backups: where the backup is.
        database: the store's file; no program has it open.
        name: the backup.

    Returns:
        Whether `finish` has something to do.

    Raises:
        RestoreFailed: there is no such backup, it is damaged, it is of a later version of jr2, or
            there is no room for the copy.
    """
    if _restored_from(database) == name:
        return False
    part = database.with_name(database.name + _PART)
    try:
        backup = backups.path(name)
        version = check(backup)
        if version > len(MIGRATIONS):
            raise RestoreFailed(
                f'backup "{name}" was written by a later version of jr2 (its tables are at '
                f"{version}, this program knows {len(MIGRATIONS)})"
            )
        shutil.copyfile(backup, part)
        with contextlib.closing(sqlite3.connect(part, isolation_level=None)) as copy:
            copy.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (RESTORED, name))
        check(part)
        sync(part)
        for suffix in ("", *_LOGS):
            Path(f"{database}{ASIDE}{suffix}").unlink(missing_ok=True)
        part.rename(database.with_name(database.name + _READY))
        sync(database.parent)
    except (BackupFailed, OSError, sqlite3.Error) as failed:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise RestoreFailed(str(failed)) from failed
    return True


def finish(database: Path) -> str | None:
    """Put a copy that is ready in the place of the store; return the backup's name if there was one.

    Args:
        database: the store's file; no program has it open.

    Raises:
        OSError: the volume does not take it; the next start goes on.
    """
    ready = database.with_name(database.name + _READY)
    if not ready.exists():
        return None
    # The log goes with its own store: beside another one it would be read as that one's.
    for suffix in (*_LOGS, ""):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{database}{suffix}").rename(f"{database}{ASIDE}{suffix}")
    sync(database.parent)
    name = _restored_from(ready)
    ready.rename(database)
    sync(database.parent)
    return name


def _restored_from(database: Path) -> str | None:
    """Return the backup that a store was restored from; a store that cannot be read is from none."""
    if not database.exists():
        return None
    try:
        with contextlib.closing(
            sqlite3.connect(f"file:{database}?mode=ro", uri=True, isolation_level=None)
        ) as store:
            row = store.execute("SELECT value FROM meta WHERE key = ?", (RESTORED,)).fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else str(row[0])
