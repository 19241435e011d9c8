"""One verb of `jr2 cluster` at a time.

The lock is on the folder that holds the state folder, so that `delete` can remove the state and
still hold it. The folder itself goes with the last one that held it, when it is empty.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def hold(folder: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock; wait for who has it.

    Args:
        folder: what is locked; it is made when it is not there.
        on_wait: called once when another has the lock.
    """
    descriptor = _lock(folder, on_wait)
    try:
        yield
    finally:
        os.close(descriptor)
        with suppress(OSError):
            folder.rmdir()


@contextmanager
def hold_if_free(folder: Path) -> Iterator[bool]:
    """Hold the lock when nobody has it.

    Args:
        folder: what is locked; it must be there.

    Yields:
        Whether we hold it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def _lock(folder: Path, on_wait: Callable[[], None]) -> int:
    while True:
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        # The one before us may have removed the folder; then the lock is on nothing.
        with suppress(FileNotFoundError):
            if folder.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        os.close(descriptor)
