"""Where a value that must not reach a disk is put for the moment that a file of it is needed.

Some libraries take a path and nothing else: OpenSSL a client certificate, the engine its backend.
Such files lie in memory where the machine has a file system in memory, and only their owner reads
them.

Source: design §5.2.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_IN_MEMORY: Final = ("/dev/shm", "/run/user/{uid}")  # noqa: S108 - only a unique name is made there


def memory_root() -> Path:
    """Return a folder in memory that we may write in, or the folder for temporary files."""
    for candidate in _IN_MEMORY:
        root = Path(candidate.format(uid=os.getuid()))
        if root.is_dir() and os.access(root, os.W_OK | os.X_OK) and _in_memory(root):
            return root
    return Path(tempfile.gettempdir())


def write_file(path: Path, content: bytes) -> None:
    """Write a new file that only its owner reads.

    Args:
        path: where; nothing may be there yet.
        content: what it holds.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


@contextmanager
def secret_file(content: bytes) -> Iterator[Path]:
    """Give a file with mode 0600 that holds `content`, and remove it again."""
    descriptor, name = tempfile.mkstemp(prefix="jr2-", dir=memory_root())
    path = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield path
    finally:
        path.unlink(missing_ok=True)


def _in_memory(root: Path) -> bool:
    """Say whether a folder lies on a tmpfs, as far as the machine tells."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    kinds = {parts[1]: parts[2] for parts in (line.split(" ") for line in mounts) if len(parts) > 2}
    return kinds.get(str(root)) in {"tmpfs", "ramfs"}
