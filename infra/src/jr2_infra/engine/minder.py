"""The minder: it stands where the engine would be, and ends everything when the command is gone.

It runs as a program of its own, with the standard library alone: `minder.py <descriptor> <program>
<argument>…`. The command starts it as the leader of a new session and holds the other end of the
pipe behind the descriptor. When that end closes, also because the command was killed with -9, every
process of the session is killed. The engine puts each plugin into a process group of its own, so it
is the session that says what belongs together.

Source: design §5.2 (fencing).
"""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import sys
import time
from collections.abc import Iterable
from typing import Final

_SUBREAPER: Final = 36
_PATIENCE: Final = 10.0
"""Seconds after which a process that was killed and does not end is left: the kernel holds it."""
_PAUSE: Final = 0.002
"""Seconds between two looks at those that were killed; a large one takes its time to end."""


def main(argv: list[str]) -> int:
    """Run a program and return its exit code; end the session when the pipe closes."""
    pipe, command = int(argv[1]), argv[2:]
    _adopt_orphans()
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for stop in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(stop, lambda *_: _end_all())
    child = _start(command)
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == pipe and not os.read(pipe, 1):
                    _end_all()
                if key.fd == woken:
                    os.read(woken, 512)
            status = _reap(child)
            if status is not None:
                end_session(os.getsid(0), spare=(os.getpid(),))
                return status


def session_members(session: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    return [pid for pid in _pids() if _session_of(pid) == session and not _is_over(pid)]


def end_session(session: int, *, spare: Iterable[int] = ()) -> None:
    """Kill every process of a session, also those that are started meanwhile, until all are gone.

    Args:
        session: the session.
        spare: processes that stay.
    """
    kept, until = frozenset(spare), time.monotonic() + _PATIENCE
    while members := [pid for pid in session_members(session) if pid not in kept]:
        for pid in members:
            _kill(pid, session)
        if time.monotonic() > until:
            return
        time.sleep(_PAUSE)


def _kill(pid: int, session: int) -> None:
    """Kill a process that is still of the session; its number may be another's by now."""
    if not hasattr(os, "pidfd_open"):
        if _session_of(pid) == session:
            _signal(pid)
        return
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if _session_of(pid) == session:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return
    finally:
        os.close(handle)


def _signal(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return


def _end_all() -> None:
    end_session(os.getsid(0), spare=(os.getpid(),))
    os._exit(137)


def _start(command: list[str]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        signal.set_wakeup_fd(-1)
        os.execv(command[0], command)  # noqa: S606 - a program and its arguments, no shell
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _reap(child: int) -> int | None:
    """Wait for what ended; return the exit code of the one program that counts."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return 1
        if pid == 0:
            return None
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _adopt_orphans() -> None:
    """Become the parent of what the engine leaves behind, so that it can be waited for."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _is_over(pid: int) -> bool:
    """Say whether a process has ended and only waits to be reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return sys.platform == "linux"


def _pids() -> list[int]:
    if sys.platform == "linux":
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    listed = (ctypes.c_int * 65536)()
    count = ctypes.CDLL(None).proc_listallpids(listed, ctypes.sizeof(listed))
    return [pid for pid in listed[: max(count, 0)] if pid > 0]


if __name__ == "__main__":
    sys.exit(main(sys.argv))
