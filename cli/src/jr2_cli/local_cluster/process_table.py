"""What `/proc` says of processes: who still lives, and who is who.

A process id alone names nothing for long; with the time at which the kernel started it, it does.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterator
from pathlib import Path

_PROC = Path("/proc")


def start_ticks(pid: int) -> int | None:
    """When a process started, in the kernel's ticks since it booted.

    Returns:
        `None` when there is no such process, or only what its parent has not yet collected.
    """
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The name is in brackets and may hold anything.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def resident_bytes(pid: int) -> int | None:
    """How much memory a process holds; `None` when there is no such process."""
    try:
        pages = int((_PROC / str(pid) / "statm").read_text().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def lives(pid: int, ticks: int | None) -> bool:
    """Tell whether the process that had this id and start still lives."""
    return ticks is not None and start_ticks(pid) == ticks


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


def end(pids: Collection[int], *, settle_seconds: float) -> None:
    """End processes: ask them, wait, then kill what is left, and wait until all are gone.

    Args:
        pids: the processes; one that is gone already is no error.
        settle_seconds: how long they have to end by themselves; 0 kills them at once.
    """
    left = {pid: ticks for pid in pids if (ticks := start_ticks(pid)) is not None}
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
            left = {pid: ticks for pid, ticks in left.items() if lives(pid, ticks)}
            if left:
                time.sleep(0.02)
