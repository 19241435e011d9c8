"""The folder that keeps programs between runs: its lock, its work folders, and how it is written.

A program lies at `<name>/<version>/<name>`, whole or not at all. What is being made lies in work
folders beside it, on the same file system; only who holds the lock writes there, so what another
one finds in them is what an interrupted install left.

Source: design §7.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from . import golang

LOCK: Final = ".lock"
_PATIENCE: Final = 2.0
"""Seconds that the holder of the lock has to say its process id."""
WORK: Final = ".work"
DOWNLOADS: Final = ".downloads"
LEFT: Final = ".left-"
"""Starts the name of a folder that is being removed."""


class Held(Exception):
    """Another process holds the lock.

    Args:
        process: its id; `None` when it did not say.
    """

    def __init__(self, process: int | None) -> None:
        super().__init__(process)
        self.process = process


@contextmanager
def locked(cache: Path, waiting: Callable[[int | None], None] | None = None) -> Iterator[None]:
    """Hold the lock of the cache.

    Args:
        cache: the folder; it is made.
        waiting: called with the id of the process that holds the lock, before it is waited for;
            `None` does not wait.

    Raises:
        Held: another process holds it, and nobody waits.
    """
    cache.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(cache / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is None:
                raise Held(_holder(descriptor)) from None
            waiting(_holder(descriptor))
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> int | None:
    """Return who holds the lock; who has just taken it says so a moment later."""
    end = time.monotonic() + _PATIENCE
    while True:
        said = os.pread(descriptor, 32, 0).strip()
        if said.isdigit():
            return int(said)
        if time.monotonic() > end:
            return None
        time.sleep(0.005)


def place_binary(made: Path, target: Path) -> None:
    """Move a finished binary to its place in the cache, whole or not at all.

    Args:
        made: the binary, on the same file system.
        target: its place; an older file there is replaced.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    made.chmod(0o755)
    with made.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(made, target)


def clear(cache: Path, name: str) -> None:
    """Remove a work folder, also while a program of a killed install still writes there.

    The folder loses its name first, so that a new one is never the old one. What cannot be removed
    yet goes with the next `clear` or `jr2 tools prune`.
    """
    with contextlib.suppress(FileNotFoundError):
        (cache / name).rename(cache / f"{LEFT}{secrets.token_hex(4)}")
    for left in cache.glob(f"{LEFT}*"):
        with contextlib.suppress(OSError):
            golang.remove_tree(left)
