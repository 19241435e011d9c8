"""Have what was written reach the disk: a file, the names in a folder, or a whole volume.

Source: design §4.3.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path


def sync(path: Path) -> None:
    """Have a file, or a folder's names, reach the disk.

    Raises:
        OSError: the disk did not take it.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
