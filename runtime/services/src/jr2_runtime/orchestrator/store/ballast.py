"""A file that is there to be deleted: when the disk is full, what it held lets runs be cancelled.

While the ballast is out, only what frees room is written: the end of a run, and the removal of
what nobody needs. When there is room for it again, it is laid again, and everything is written.

Source: design §4.3.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

SIZE: Final = 64 * 2**20
LOOK_AGAIN_SECONDS: Final = 5.0

log = logging.getLogger("jr2.store")


class Ballast:
    """The file, and whether it is out.

    Args:
        path: on the volume of the store.
        size: bytes that it holds.
        now: seconds of a clock that only goes forward.
    """

    def __init__(
        self, path: Path, *, size: int = SIZE, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._size = size
        self._now = now
        self._looked = -LOOK_AGAIN_SECONDS
        self._out = True
        self._thrown = False

    def is_out(self) -> bool:
        """Whether the room is in use; now and then, lay it again when the disk has room."""
        if self._out and self._now() - self._looked >= LOOK_AGAIN_SECONDS:
            self._looked = self._now()
            self._out = not self._lay()
            if not self._out and self._thrown:
                log.info("the disk has room again")
        return self._out

    def throw(self) -> None:
        """Give the room to the store."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        if not self._out:
            log.error("the disk is full: runs can be read and cancelled, nothing more")
        self._out = self._thrown = True
        self._looked = self._now()

    def _lay(self) -> bool:
        """Take the room, when a quarter as much stays free."""
        with contextlib.suppress(OSError):
            if self._path.stat().st_size >= self._size:
                return True
        facts = os.statvfs(self._path.parent)
        if facts.f_bavail * facts.f_frsize < self._size + self._size // 4:
            return False
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, self._size)
            finally:
                os.close(descriptor)
        except OSError:
            self.throw()
            return False
        return True
