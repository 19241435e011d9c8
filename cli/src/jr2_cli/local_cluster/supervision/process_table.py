"""What `/proc` says of processes: what they hold, what they were started with, and their end.

A process id alone names nothing for long. With the start that `jr2_infra.process_table` reads, in
which the boot is a part, it does.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from jr2_infra import process_table as identity

_PROC = Path("/proc")


def resident_bytes(pid: int) -> int | None:
    """How much memory a process holds; `None` when there is no such process."""
    try:
        pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def lives(pid: int, start: str | None) -> bool:
    """Tell whether the process that had this id and start still lives.

    Args:
        pid: its id.
        start: what `jr2_infra.process_table.start_of` said of it.
    """
    return start is not None and identity.is_running(pid, start)


def command_lines() -> Iterator[tuple[int, list[str]]]:
    """Each process with its arguments; threads of the kernel have none and are left out."""
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            raw = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if raw:
            yield int(entry.name), os.fsdecode(raw).rstrip("\0").split("\0")


def find_by_argument(word: str) -> set[int]:
    """The processes of which one argument is `word`."""
    return {pid for pid, argv in command_lines() if word in argv and pid != os.getpid()}


def find_marked(mark: str, folder: Path) -> set[int]:
    """The processes that run in a folder and carry a text in their environment.

    Args:
        mark: a whole entry, `NAME=value`.
        folder: the folder that they run in.
    """
    found = set()
    for pid, _ in command_lines():
        try:
            runs_there = (_PROC / str(pid) / "cwd").readlink() == folder
            carried = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if runs_there and os.fsencode(mark) in carried and pid != os.getpid():
            found.add(pid)
    return found


def end(pids: Collection[int], *, settle_seconds: float) -> None:
    """End processes: ask them, wait, then kill what is left, and wait until all are gone.

    Args:
        pids: the processes; one that is gone already is no error.
        settle_seconds: how long they have to end by themselves; 0 kills them at once.
    """
    left = {pid: start for pid in pids if (start := identity.start_of(pid)) is not None}
    for number, seconds in ((signal.SIGTERM, settle_seconds), (signal.SIGKILL, 10.0)):
        if number is signal.SIGTERM and settle_seconds <= 0:
            continue
        for pid in left:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
        deadline = time.monotonic() + seconds
        while left and time.monotonic() < deadline:
            left = {pid: start for pid, start in left.items() if lives(pid, start)}
            if left:
                time.sleep(0.02)
