"""One hash for a tree of files: image tags and the Assembly hash, on the host and in the cluster.

The hash covers, for each entry in the order of its path: the path, the kind, the execute bit, and
the bytes or the link's target. It does not depend on clock, user, umask, checkout path or the
order in which a folder lists its entries; folders count only through what they hold.

Source: design §5.4 (last paragraph).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    """One file or symlink of a tree; `path` is relative, with `/` between its parts."""

    path: str
    kind: str
    """`file`, `exec` (a file with an execute bit for its owner) or `link`."""
    content: Path | bytes
    """A file's place on the disk, or its bytes; a link's target as bytes."""


def entries(root: Path) -> Iterator[Entry]:
    """Yield each file and symlink below `root`; sockets, devices and pipes are refused.

    Raises:
        ValueError: an entry is neither file, folder nor symlink.
    """
    for folder, folders, files in os.walk(root):
        for name in [*files, *(n for n in folders if os.path.islink(os.path.join(folder, n)))]:
            place = Path(folder, name)
            path = place.relative_to(root).as_posix()
            status = place.lstat()
            if stat.S_ISLNK(status.st_mode):
                yield Entry(path, "link", os.fsencode(os.readlink(place)))
            elif stat.S_ISREG(status.st_mode):
                yield Entry(path, "exec" if status.st_mode & stat.S_IXUSR else "file", place)
            else:
                raise ValueError(f"{path} is neither file, folder nor symlink")


def tree_hash(parts: Iterable[Entry], *, salt: str = "") -> str:
    """Return the SHA-256 of a tree as 64 hex digits.

    Args:
        parts: the entries, in any order.
        salt: separates two uses of the same tree; it is hashed first.
    """
    digest = hashlib.sha256()

    def feed(data: bytes) -> None:
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)

    feed(salt.encode())
    for entry in sorted(parts, key=lambda part: part.path.encode()):
        feed(entry.path.encode())
        feed(entry.kind.encode())
        if isinstance(entry.content, bytes):
            feed(entry.content)
        else:
            size = entry.content.stat().st_size
            digest.update(size.to_bytes(8, "big"))
            with entry.content.open("rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
    return digest.hexdigest()


def hash_folder(root: Path, *, salt: str = "") -> str:
    """Return the hash of everything below `root`, as `tree_hash` does."""
    return tree_hash(entries(root), salt=salt)
