"""Start and end the Assembly processes; the only module of the services that starts a process.

An Assembly process gets an environment of five variables, one inherited descriptor (its
connection, number 3), no standard input, and a session of its own, so that everything it started
ends with it.
"""

from __future__ import annotations

import contextlib
import os
import signal

CONNECTION: int = 3
"""The number of the connection's descriptor in an Assembly process."""

ENVIRONMENT: dict[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",  # noqa: S108 - the only folder that the container may write
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
}


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
