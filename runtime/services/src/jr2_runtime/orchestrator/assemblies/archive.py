"""Unpack the archive of an Assembly, one member at a time, each checked by our own code.

The archive is a gzip tar of `assembly.json`, `instance/…` and `packages/…`. It is read twice: the
survey refuses whatever must not be there before anything is written, then the unpacking writes
files and folders with modes of our own, and symlinks last. `tarfile` only reads here; it never
extracts, for the Python of the image (3.11.2) has no filter for that.

What is refused: an absolute name, a `.` or `..` in one, a name twice, a name below a file or a
link, a hard link, a device or a pipe, a link that leaves the Assembly, too many files, too many
bytes, and too little free space.
"""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import os
import posixpath
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from jr2 import names

_TOP: Final = (names.ASSEMBLY_MANIFEST, names.ASSEMBLY_INSTANCE, names.ASSEMBLY_PACKAGES)
_LONGEST_NAME: Final = 1024
SPARE_BYTES: Final = 64 * 2**20
"""What must stay free on the volume, so that the store can go on."""
_CHUNK: Final = 1 << 20
_DEEPEST: Final = 64
_LONGEST_EXTENSION: Final = 64 * 2**10
_EXTENSIONS: Final = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


class ArchiveRefused(Exception):
    """The archive is not one of an Assembly, or it is too large; nothing of it is kept.

    Args:
        code: the HTTP status: 400 for what is not an Assembly, 413 for too large, 507 when the
            volume has no room for it.
        message: names the member.
    """

    def __init__(self, code: Literal[400, 413, 507], message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One entry of the archive, checked."""

    path: str
    kind: Literal["file", "folder", "link"]
    executable: bool
    size: int
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much one Assembly may hold."""

    files: int = names.MAX_ASSEMBLY_FILES
    unpacked: int = names.MAX_ASSEMBLY_BYTES
    spare: int = SPARE_BYTES


def _check_path(name: str) -> str:
    """Return the member's path without a slash at its end, or refuse it."""
    path = name.removesuffix("/")
    parts = path.split("/")
    if (
        not path
        or len(path.encode(errors="surrogateescape")) > _LONGEST_NAME
        or len(parts) > _DEEPEST
        or any(part in ("", ".", "..") for part in parts)
        or not path.isprintable()
        or "\\" in path
    ):
        raise ArchiveRefused(400, f"the archive holds a name that is not allowed: {name!r}")
    if parts[0] not in _TOP or (parts[0] == names.ASSEMBLY_MANIFEST and len(parts) > 1):
        raise ArchiveRefused(400, f"the archive holds {name!r}, which is no part of an Assembly")
    return path


def _check_link(path: str, target: str) -> None:
    """Refuse a link whose target is absolute or leaves the Assembly by its text."""
    resolved = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    if (
        not target
        or target.startswith("/")
        or "\\" in target
        or not target.isprintable()
        or len(target) > _LONGEST_NAME
        or resolved == ".."
        or resolved.startswith("../")
    ):
        raise ArchiveRefused(400, f"the symlink {path!r} points outside the Assembly ({target!r})")


def _member(info: tarfile.TarInfo) -> Member:
    path = _check_path(info.name)
    if info.issparse() or info.size < 0:
        raise ArchiveRefused(400, f"{path!r} has no plain size")
    if info.isreg():
        return Member(
            path=path,
            kind="file",
            executable=bool(info.mode & 0o100),
            size=info.size,
            target="",
        )
    if info.isdir():
        return Member(path=path, kind="folder", executable=False, size=0, target="")
    if info.issym():
        _check_link(path, info.linkname)
        return Member(path=path, kind="link", executable=False, size=0, target=info.linkname)
    raise ArchiveRefused(400, f"{path!r} is neither file, folder nor symlink")


class _BoundedInfo(tarfile.TarInfo):
    """A header whose extensions are short: `tarfile` reads them into memory whole."""

    def _proc_member(self, tarfile: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _EXTENSIONS and not 0 <= self.size <= _LONGEST_EXTENSION:
            raise ArchiveRefused(400, "the archive holds a header that is too long")
        return super()._proc_member(tarfile)  # type: ignore[misc,no-any-return]


@contextlib.contextmanager
def _reading(archive: Path) -> Iterator[tarfile.TarFile]:
    """Open the archive; what is not a whole gzip tar is refused with 400."""
    try:
        with tarfile.open(
            archive, mode="r|gz", tarinfo=_BoundedInfo, encoding="utf-8", errors="strict"
        ) as tar:
            yield tar
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, UnicodeError) as bad:
        raise ArchiveRefused(400, f"the archive is not a gzip tar: {bad}") from bad


def survey(archive: Path, limits: Limits, free: int) -> list[Member]:
    """Check every member of the archive without writing anything.

    Args:
        archive: the file.
        limits: how much is allowed.
        free: bytes that the volume has left.

    Raises:
        ArchiveRefused: the first thing that is wrong.
    """
    members: dict[str, Member] = {}
    total = 0
    with _reading(archive) as tar:
        for info in tar:
            member = _member(info)
            if member.path in members:
                raise ArchiveRefused(400, f"the archive holds {member.path!r} twice")
            members[member.path] = member
            total += member.size
            if len(members) > limits.files:
                raise ArchiveRefused(413, f"the Assembly has more than {limits.files} files")
            if total > limits.unpacked:
                raise ArchiveRefused(413, f"the Assembly is larger than {limits.unpacked} bytes")
            if total + limits.spare > free:
                raise ArchiveRefused(507, "the state volume has no room for the Assembly")
    for path in members:
        for parent in _parents(path):
            above = members.get(parent)
            if above is not None and above.kind != "folder":
                raise ArchiveRefused(400, f"{path!r} lies below {parent!r}, which is no folder")
    manifest = members.get(names.ASSEMBLY_MANIFEST)
    if manifest is None or manifest.kind != "file":
        raise ArchiveRefused(400, f"the archive holds no {names.ASSEMBLY_MANIFEST}")
    return list(members.values())


def _parents(path: str) -> Iterator[str]:
    parent = posixpath.dirname(path)
    while parent:
        yield parent
        parent = posixpath.dirname(parent)


def _make_folder(root: Path, path: str) -> None:
    """Make a folder and those above it, readable by the worker whatever the umask is."""
    for part in [*reversed(list(_parents(path))), path] if path else []:
        place = root / part
        if not place.is_dir():
            place.mkdir()
            place.chmod(0o755)


def unpack(archive: Path, members: list[Member], root: Path) -> None:
    """Write the surveyed members below `root`, which must not exist, and sync them to the disk.

    Raises:
        ArchiveRefused: a link leaves the Assembly by way of another link, or the archive is cut.
        OSError: the volume did not take a file.
    """
    root.mkdir(mode=0o755)
    root.chmod(0o755)
    surveyed = iter(members)
    with _reading(archive) as tar:
        for info in tar:
            member = next(surveyed)
            assert member.path == info.name.removesuffix("/")  # nobody else writes the archive
            if member.kind == "folder":
                _make_folder(root, member.path)
            elif member.kind == "file":
                _make_folder(root, posixpath.dirname(member.path))
                _write_file(tar, info, member, root)
    links = [member for member in members if member.kind == "link"]
    for link in links:
        _make_folder(root, posixpath.dirname(link.path))
        os.symlink(link.target, root / link.path)
    inside = os.path.realpath(root)
    for link in links:
        # By its text each link stays inside; through another link it might still leave.
        resolved = os.path.realpath(root / link.path)
        if resolved != inside and not resolved.startswith(inside + os.sep):
            raise ArchiveRefused(
                400, f"the symlink {link.path!r} points outside the Assembly ({link.target!r})"
            )
    sync_volume(root)


def _write_file(tar: tarfile.TarFile, info: tarfile.TarInfo, member: Member, root: Path) -> None:
    content = tar.extractfile(info)
    assert content is not None  # a regular file has content
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(root / member.path, flags, 0o600)
    with content, open(descriptor, "wb") as file:
        shutil.copyfileobj(content, file, _CHUNK)
        if file.tell() != member.size:
            raise ArchiveRefused(400, f"the archive is cut inside {member.path!r}")
        os.fchmod(file.fileno(), 0o755 if member.executable else 0o644)


def sync_volume(place: Path) -> None:
    """Put everything that was written on the volume of `place` on the disk.

    Raises:
        OSError: the disk did not take it.
    """
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if library.syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(place))
    finally:
        os.close(descriptor)
