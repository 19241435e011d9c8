"""Which process is which: a number is used again, a number with its start is not.

Source: design §5.2 (a run on the same host ends what is left), field case 4d.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

from . import processes
from .engine import minder
from .engine.run_file import ENV_RUN_FILE


def host() -> str:
    """Return the name of this machine."""
    return socket.gethostname()


def start_of(pid: int) -> str | None:
    """Return when a process was started, in words that only compare; `None` when it is gone.

    On Linux the boot is part of it, so that nothing of before a restart is taken for a process of
    now.
    """
    stat = Path(f"/proc/{pid}/stat")
    try:
        fields = stat.read_bytes().rpartition(b")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None if Path("/proc/self/stat").exists() else _start_elsewhere(pid)
    return None if fields[0] in (b"Z", b"X") else f"{boot}/{fields[19].decode()}"


def is_running(pid: int, start: str) -> bool:
    """Say whether the very process still runs."""
    return start_of(pid) == start


def end_left_over(session: int, start: str, mark: str) -> list[int]:
    """Kill what is left of an engine whose command is gone; return the processes that were left.

    The numbers stand in a Lease, which somebody may have forged. So a session is the engine's only
    when one of its processes has the run's own file in its environment, as only an engine of jr2
    has; where no environment can be read, when its leader is the process that was recorded. Any
    other process that came by one of the numbers is not touched.

    Args:
        session: the session that the minder led, which is its process number.
        start: when the minder was started.
        mark: the path of the run file, which each process of that run has in `JR2_RUN_FILE`.
    """
    members = minder.session_members(session)
    if Path("/proc/self/environ").exists():
        ours = any(_carries(pid, mark) for pid in members)
    else:
        ours = is_running(session, start)
    if not members or not ours or session == os.getsid(0):
        return []
    minder.end_session(session)
    return members


def _carries(pid: int, mark: str) -> bool:
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return bool(mark) and f"{ENV_RUN_FILE}={mark}".encode() in entries
    except OSError:
        return False


def _start_elsewhere(pid: int) -> str | None:
    done = processes.run(["ps", "-o", "lstart=", "-p", str(pid)])
    return done.stdout.strip() or None
