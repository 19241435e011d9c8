"""Start and end the Assembly processes; the only module of the services that starts a process.

An Assembly process gets an environment of five variables, one inherited descriptor (its
connection, number 3), no standard input, limits, and a session of its own. Everything it started
ends with it: its group, and what left the group, which becomes a child of the supervisor.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
from collections.abc import Container

CONNECTION: int = 3
"""The number of the connection's descriptor in an Assembly process."""

ENVIRONMENT: dict[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - the only folder that the container may write
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
}


MOST_PROCESSES: int = 1024
"""How many processes and threads the worker's user may have; root, in a test, has no such limit."""
_PR_SET_CHILD_SUBREAPER: int = 36


def adopt_orphans() -> None:
    """Become the parent of whatever loses its own below this process."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def limit(process: int, memory: int) -> None:
    """Bound what a process that has run no user code yet, and all that it starts, may take.

    Args:
        process: its id.
        memory: bytes of data, its threads' stacks included. Beyond them user code gets a
            `MemoryError`; without them the container is killed as a whole.
    """
    bounds = {
        resource.RLIMIT_DATA: memory,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NPROC: MOST_PROCESSES,
    }
    for bound, most in bounds.items():
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(process, bound, (most, most))


def end_orphans(known: Container[int]) -> None:
    """Kill every child that is not known: a process that user code left behind.

    Those that a killed one leaves behind are children then, and the next call ends them.
    """
    own = os.getpid()
    with contextlib.suppress(OSError), open(f"/proc/{own}/task/{own}/children") as children:
        for child in map(int, children.read().split()):
            if child not in known:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)


def start(argv: list[str], connection: int) -> int:
    """Start one Assembly process and return its process id, which is also its group's.

    Args:
        argv: the whole command; `argv[0]` is an absolute path.
        connection: the descriptor that becomes number 3 in the process.

    Raises:
        OSError: the program could not be started.
    """
    for descriptor in os.listdir("/proc/self/fd"):
        # Python opens everything close-on-exec; what this program was started with may not be.
        if int(descriptor) > 2:
            with contextlib.suppress(OSError):  # the listing's own, closed by now
                os.set_inheritable(int(descriptor), False)
    return os.posix_spawn(
        argv[0],
        argv,
        ENVIRONMENT,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, connection, CONNECTION),
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGPIPE],
    )


def end(group: int) -> None:
    """Kill every process of a group; one that is gone already is no error."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def reap() -> list[tuple[int, int]]:
    """Collect every child that ended: `(process id, exit code)`, negative for a signal."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if process == 0:
            return ended
        ended.append((process, os.waitstatus_to_exitcode(status)))
