"""The files of all Assemblies, each content once; the trees of the Assemblies are links to them.

A blob is a file that nobody writes: its name is the SHA-256 of its bytes, and it appears under that
name once its bytes are on the disk. A file with an execute bit is another blob than the same bytes
without one, for the links to a file share its mode. A blob to which no tree links is kept for an
hour, so that a publish that was cut goes on where it was, and goes with a sweep after that, whatever
ended the publish that sent it.

Source: design §5.5, ADR-0118.
"""

from __future__ import annotations

import errno
import os
import shutil
import threading
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from jr2.wire import AssemblyFile

from ..disk import sync, sync_volume
from .listing import parents
from .refused import PublishError

FOLDER: Final = "blobs"
UNUSED_FOR_MS: Final = 3600 * 1000
"""How long a blob that no Assembly has is kept, in milliseconds."""
_EXECUTABLE: Final = ".x"
_FORMS: Final = ("", _EXECUTABLE)


class NotHeld(Exception):
    """Files of a tree whose blobs are not held.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        super().__init__(f"{count} of its files were not sent, or have gone since")


class Blobs:
    """The blobs below one state folder; used from threads.

    Args:
        state: the folder.
    """

    def __init__(self, state: Path) -> None:
        self._folder = state / FOLDER
        # A sweep must not take what is just being linked, or was just said to be held.
        self._lock = threading.Lock()

    def prepare(self) -> None:
        """Make the folder, which the worker does not see.

        Raises:
            OSError: the volume cannot be written.
        """
        self._folder.mkdir(mode=0o700, exist_ok=True)

    def missing(self, needed: Mapping[str, int], now: int) -> list[str]:
        """Return which blobs are not held; the others are not swept for an hour.

        Args:
            needed: the size of each, by its digest.
            now: milliseconds since the epoch.

        Raises:
            PublishError: 400, a size is not that of the blob.
        """
        absent = []
        with self._lock:
            for digest, size in needed.items():
                held = [self._folder / f"{digest}{form}" for form in _FORMS]
                held = [each for each in held if each.exists()]
                for each in held:
                    facts = each.stat()
                    if facts.st_size != size:
                        raise PublishError(400, f"the blob {digest[:12]} has another size")
                    if facts.st_nlink == 1:
                        _touch(each, now)
                if not held:
                    absent.append(digest)
        return absent

    def keep(self, received: Iterable[tuple[str, Path]], now: int) -> None:
        """Give each received file, whose bytes are on the disk, the name of its digest.

        Raises:
            OSError: the volume did not take it.
        """
        with self._lock:
            for digest, file in received:
                place = self._folder / digest
                if place.exists():
                    _touch(place, now)
                    continue
                file.chmod(0o444)
                _touch(file, now)
                file.rename(place)
            sync(self._folder)

    def build(self, files: Sequence[AssemblyFile], root: Path) -> None:
        """Make the tree of an Assembly below `root`, which must not exist, and sync it.

        Raises:
            NotHeld: blobs are missing; what was made is left to the caller.
            PublishError: 400, a link leaves the Assembly by way of another, or a size is wrong.
            OSError: the volume did not take it.
        """
        plain = {each.sha256 for each in files if each.kind == "file"}
        links = [each for each in files if each.kind == "link"]
        _make_folder(root)
        for folder in sorted({parent for each in files for parent in parents(each.path)}):
            _make_folder(root / folder)
        absent = 0
        with self._lock:
            for each in files:
                if each.sha256 is not None and not self._link(each, root / each.path, plain):
                    absent += 1
        if absent:
            raise NotHeld(absent)
        for each in links:
            os.symlink(each.target or "", root / each.path)
        inside = os.path.realpath(root)
        for each in links:
            # By its text each link stays inside; through another link it might still leave.
            reached = os.path.realpath(root / each.path)
            if reached != inside and not reached.startswith(inside + os.sep):
                raise PublishError(
                    400, f"the symlink {each.path!r} points outside the Assembly ({each.target!r})"
                )
        sync_volume(root)

    def sweep(
        self, now: int, *, unused_for_ms: int = UNUSED_FOR_MS, spared: Collection[str] = ()
    ) -> int:
        """Remove the blobs that no tree has had for that long; return how many bytes they held.

        Args:
            now: milliseconds since the epoch.
            unused_for_ms: how long.
            spared: digests of blobs that stay.
        """
        freed = 0
        with self._lock, os.scandir(self._folder) as found:
            for entry in found:
                facts = entry.stat(follow_symlinks=False)
                if (
                    facts.st_nlink == 1
                    and facts.st_mtime_ns // 1_000_000 <= now - unused_for_ms
                    and entry.name.removesuffix(_EXECUTABLE) not in spared
                ):
                    os.unlink(entry.path)
                    freed += facts.st_size
        return freed

    def _link(self, file: AssemblyFile, place: Path, plain: Collection[str | None]) -> bool:
        """Link a file of a tree to its blob; whether the blob is held."""
        digest = file.sha256 or ""
        blob = self._folder / digest
        if file.kind == "exec":
            blob = self._executable(blob, digest in plain)
        elif not blob.exists():
            other = blob.with_name(f"{digest}{_EXECUTABLE}")
            if not other.exists():
                return False
            _copy(other, blob, 0o444)
        try:
            if blob.stat().st_size != file.size:
                raise PublishError(400, f"{file.path!r} has another size than its list says")
            os.link(blob, place)
        except FileNotFoundError:
            return False
        except OSError as failed:
            if failed.errno != errno.EMLINK:
                raise
            # As many links as a file may have: the trees keep theirs, a new one takes its name.
            _copy(blob, blob, 0o555 if file.kind == "exec" else 0o444)
            os.link(blob, place)
        return True

    def _executable(self, blob: Path, is_needed: bool) -> Path:
        """Return the blob with an execute bit, made of the one without when it is not there."""
        place = blob.with_name(f"{blob.name}{_EXECUTABLE}")
        if place.exists() or not blob.exists():
            return place
        if is_needed or blob.stat().st_nlink > 1:
            _copy(blob, place, 0o555)
        else:
            blob.chmod(0o555)
            blob.rename(place)
        return place


def _copy(source: Path, target: Path, mode: int) -> None:
    """Put a copy of a blob under a name, as a whole."""
    made = target.with_name(f".{uuid.uuid4().hex}")
    try:
        shutil.copyfile(source, made)
        made.chmod(mode)
        made.replace(target)
    finally:
        made.unlink(missing_ok=True)


def _make_folder(place: Path) -> None:
    """Make a folder that the worker may read, whatever the umask is."""
    place.mkdir()
    place.chmod(0o755)


def _touch(file: Path, now: int) -> None:
    os.utime(file, ns=(now * 1_000_000, now * 1_000_000))
