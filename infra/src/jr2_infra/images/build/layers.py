"""One folder as one image layer: the same files give the same bytes.

Names are sorted, times are 0, owners are root, modes are reduced to what they mean, and nothing of
the machine that packed the layer stands in it.

Source: design §6.1, style: the archive row of the library table.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer on the disk.

    Args:
        path: the uncompressed tar.
        digest: `sha256:` and 64 hex digits of its bytes; both its digest and its diff id.
        size: bytes of the tar.
        unpacked: bytes of the files that it holds.
    """

    path: Path
    digest: str
    size: int
    unpacked: int


def _places(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        folders.sort()
        yield from (Path(folder, name) for name in (*folders, *files))


def _mode(status: os.stat_result) -> int:
    if stat.S_ISLNK(status.st_mode):
        return 0o777
    if stat.S_ISDIR(status.st_mode):
        return 0o1777 if status.st_mode & stat.S_ISVTX else 0o755
    return 0o755 if status.st_mode & stat.S_IXUSR else 0o644


def _member(name: str, status: os.stat_result) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.mode = _mode(status)
    return member


def pack_folder(root: Path, target: Path) -> Layer:
    """Write everything below `root` as one layer.

    Two names of one file become a file and a hard link, as Debian's packages hold them. No set-user
    bit survives, and no device, pipe or socket is packed.

    Args:
        root: becomes `/` of the image.
        target: where the tar goes; it is complete under that name or absent.

    Raises:
        ValueError: an entry is neither file, folder nor symlink.
    """
    unpacked = 0
    seen: dict[tuple[int, int], str] = {}
    partial = target.with_name(f"{target.name}.part")
    partial.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(partial, "w", format=tarfile.GNU_FORMAT) as tar:
        for place in sorted(_places(root), key=lambda path: path.relative_to(root).parts):
            name = place.relative_to(root).as_posix()
            status = place.lstat()
            member = _member(name, status)
            if stat.S_ISDIR(status.st_mode):
                member.type = tarfile.DIRTYPE
                tar.addfile(member)
            elif stat.S_ISLNK(status.st_mode):
                member.type, member.linkname = tarfile.SYMTYPE, os.readlink(place)
                tar.addfile(member)
            elif not stat.S_ISREG(status.st_mode):
                raise ValueError(f"{name} is neither file, folder nor symlink")
            elif (first := seen.setdefault((status.st_dev, status.st_ino), name)) != name:
                member.type, member.linkname = tarfile.LNKTYPE, first
                tar.addfile(member)
            else:
                member.size = status.st_size
                unpacked += status.st_size
                with place.open("rb") as file:
                    tar.addfile(member, file)
    return _finish(partial, target, unpacked)


def _finish(partial: Path, target: Path, unpacked: int) -> Layer:
    with partial.open("rb") as file:
        digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    size = partial.stat().st_size
    partial.replace(target)
    return Layer(path=target, digest=digest, size=size, unpacked=unpacked)
