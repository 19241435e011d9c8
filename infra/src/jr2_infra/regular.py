"""Read a file that a person keeps, and never a pipe or a device, which could block or never end."""

from __future__ import annotations

import errno
import stat
from pathlib import Path


def read(path: Path) -> bytes:
    """Return the content of a file; a link to one is one.

    Raises:
        OSError: it cannot be read, or is of another kind; its words say which.
    """
    mode = path.stat().st_mode
    # A folder says so itself, in the words of the system.
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise OSError(errno.ENXIO, "it is no regular file", str(path))
    return path.read_bytes()
