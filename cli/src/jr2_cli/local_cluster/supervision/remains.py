"""What a supervisor leaves: its lock, what it wrote down, and processes that it no longer keeps.

Whether one runs is asked of the lock, which the kernel gives back however the supervisor ended. What
a killed one left running is found by the ids and starts that it wrote down, and by the mark that
each of its processes carries, since it may be killed between a start and its note of it.

Source: design §7.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from ..node import cgroups
from . import plan, process_table

_LOCK_SECONDS = 0.5
_LEFTOVER_SECONDS = 2.0
_GROUP_SETTLE_SECONDS = 3.0


def end_remains(service: plan.Service) -> None:
    """End what a service leaves running when it ends: its pods, or its helpers."""
    if service.group_ends is not None:
        found = cgroups.read_mounts(Path("/proc/mounts").read_text())
        if found is not None:
            process_table.end(
                cgroups.process_ids(found, service.group_ends),
                settle_seconds=_GROUP_SETTLE_SECONDS,
            )
    if service.strays is not None:
        process_table.end(process_table.find_by_argument(service.strays), settle_seconds=1.0)


def leftovers(work: plan.Plan) -> set[int]:
    """The processes of a plan that run, whoever keeps them."""
    state = read_state(work.state)
    noted = () if state is None else state.services
    left = {
        entry.pid
        for entry in noted
        if entry.pid is not None and process_table.lives(entry.pid, entry.start)
    }
    return left | process_table.find_marked(work.mark, work.folder)


def known_leftovers(path: Path) -> set[int]:
    """The processes that run of the plan in a file; none when there is no plan."""
    try:
        work = plan.Plan.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return set()
    return leftovers(work)


def end_leftovers(work: plan.Plan) -> int:
    """End the processes of a supervisor that was killed; pods go on, as when a node restarts.

    Returns:
        How many there were.
    """
    left = leftovers(work)
    # They stand a crash; waiting for one that waits for another would only take long.
    process_table.end(left, settle_seconds=_LEFTOVER_SECONDS)
    work.state.unlink(missing_ok=True)
    return len(left)


def read_state(path: Path) -> plan.State | None:
    """What a supervisor wrote down; `None` when there is nothing that can be read."""
    try:
        return plan.State.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None


def take_lock(path: Path) -> int | None:
    """Lock the file that says that a supervisor lives.

    Returns:
        The descriptor that holds the lock until it is closed; `None` when another holds it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # `is_running` holds the lock for an instant when nobody has it.
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() < deadline:
                time.sleep(0.02)
                continue
            os.close(descriptor)
            return None
        return descriptor


def is_running(path: Path) -> bool:
    """Tell whether a supervisor holds its lock.

    Args:
        path: the file that it locks.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
