"""The backups of a store: each is whole, checked, and appears under its name in one step.

`VACUUM INTO` reads one moment of the store while events are taken, and writes a file without gaps.
The file is checked, synced and renamed; what a kill leaves half written has another name and goes
at the next start. A backup is not begun when it would take the room that the ballast keeps.

Source: design §4.3, ADR-0143.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ..disk import sync
from ..store.ballast import SIZE as BALLAST

KEPT: Final = 4
"""How many backups are kept; the oldest goes first."""
SHARE: Final = 0.25
"""How much of the volume they may take together; the newest stays in any case."""
EVERY_MS: Final = 6 * 3600 * 1000
"""How old the newest may become."""
FOLDER: Final = "backups"
_PART: Final = ".part"
_NAME: Final = re.compile(r"state-\d{8}T\d{6}Z\.db")


class BackupFailed(Exception):
    """No backup was made; those that were there still are."""


class Backups:
    """The backups below one state folder.

    Args:
        state: the folder of the store.
        database: its file.
        kept: how many are kept.
    """

    def __init__(self, state: Path, database: Path, *, kept: int = KEPT) -> None:
        self._folder = state / FOLDER
        self._database = database
        self._kept = kept

    def names(self) -> list[str]:
        """Return the names of the backups, the newest first."""
        with contextlib.suppress(FileNotFoundError):
            found = [each.name for each in self._folder.iterdir() if _NAME.fullmatch(each.name)]
            return sorted(found, reverse=True)
        return []

    def path(self, name: str) -> Path:
        """Return the file of a backup.

        Raises:
            BackupFailed: there is none of that name; the text names those that there are.
        """
        if name not in self.names():
            listed = ", ".join(self.names()) or "none"
            raise BackupFailed(f'there is no backup "{name}" (backups: {listed})')
        return self._folder / name

    def newest_at(self) -> int | None:
        """Return when the newest was made, in milliseconds since the epoch."""
        names = self.names()
        if not names:
            return None
        made = datetime.strptime(names[0], "state-%Y%m%dT%H%M%SZ.db").replace(tzinfo=UTC)
        return int(made.timestamp()) * 1000

    def clean(self) -> None:
        """Remove what a backup that was cut has left; call it before the first one is made."""
        with contextlib.suppress(FileNotFoundError):
            for each in self._folder.iterdir():
                if each.name.endswith((_PART, f"{_PART}-journal")):
                    each.unlink(missing_ok=True)

    def make(self, now: int) -> str:
        """Make a backup of what is committed, then remove those that are too many.

        Args:
            now: milliseconds since the epoch; it becomes the name.

        Returns:
            Its name.

        Raises:
            BackupFailed: there is no room, or the store cannot be read.
        """
        moment = datetime.fromtimestamp(now // 1000, UTC)
        name = f"state-{moment:%Y%m%dT%H%M%SZ}.db"
        part = self._folder / f"{name}{_PART}"
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._check_room()
            part.unlink(missing_ok=True)
            with contextlib.closing(_open(self._database)) as store:
                store.execute("VACUUM INTO ?", (str(part),))
            check(part)
            self._appear(part, name)
        except (OSError, sqlite3.Error) as failed:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise BackupFailed(str(failed)) from failed
        except BackupFailed:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise
        self._prune()
        return name

    def take(self, name: str, content: bytes) -> None:
        """Put a copy that was kept elsewhere among the backups.

        Raises:
            BackupFailed: the name is not that of a backup, or the content is no whole store.
        """
        if not _NAME.fullmatch(name):
            raise BackupFailed(f'"{name}" is no name of a backup (state-<date>T<time>Z.db)')
        part = self._folder / f"{name}{_PART}"
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            part.write_bytes(content)
            check(part)
            self._appear(part, name)
        except (OSError, sqlite3.Error, BackupFailed) as failed:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
            raise BackupFailed(str(failed)) from failed

    def _check_room(self) -> None:
        size = self._database.stat().st_size
        facts = os.statvfs(self._folder)
        free = facts.f_bavail * facts.f_frsize
        if free < size + BALLAST:
            raise BackupFailed(
                f"it needs {size} bytes beside the {BALLAST} that stay free, and the volume has "
                f"{free}"
            )

    def _appear(self, part: Path, name: str) -> None:
        sync(part)
        part.rename(self._folder / name)
        sync(self._folder)

    def _prune(self) -> None:
        """Remove the oldest that are too many, or take too much of the volume."""
        facts = os.statvfs(self._folder)
        room = facts.f_blocks * facts.f_frsize * SHARE
        for number, name in enumerate(self.names()):
            path = self._folder / name
            room -= path.stat().st_size
            if number and (number >= self._kept or room < 0):
                path.unlink()


def check(path: Path) -> int:
    """Read a whole database and return the number of its schema.

    Raises:
        BackupFailed: it is damaged, or it is no store.
    """
    try:
        with contextlib.closing(_open(path)) as copy:
            (said,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
            (version,) = copy.execute("PRAGMA user_version").fetchone()
            copy.execute("SELECT key FROM meta LIMIT 1")
    except sqlite3.Error as failed:
        raise BackupFailed(f"{path.name} is no store: {failed}") from failed
    if said != "ok":
        raise BackupFailed(f"{path.name} is damaged: {said}")
    assert isinstance(version, int)
    return version


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    connection.execute("PRAGMA busy_timeout = 5000")
    return connection
