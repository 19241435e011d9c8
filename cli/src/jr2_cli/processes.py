"""The one module of the command that starts other programs.

A program is started from a list, never through a shell, with stdin closed. What was started here is
ended when the command ends, whichever way it ends: on Linux the kernel sends the signal when the
command is killed.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from jr2_infra import inherited, processes

_GRACE = 1.0
"""Seconds that a program has to end by itself."""

_started: set[subprocess.Popen[str]] = set()
_lock = threading.Lock()


def start(
    argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a program that lives no longer than this command; its streams come through pipes.

    Args:
        argv: the program and its arguments.
        env: the whole environment; `None` hands over ours without what `.env` filled.

    Raises:
        OSError: it cannot be started.
    """
    surroundings = inherited.environment() if env is None else dict(env)
    process = subprocess.Popen(
        processes.bound_to_us(argv, signal.SIGTERM, env=surroundings),
        env=surroundings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    with _lock:
        _started.add(process)
    return process


def stop(process: subprocess.Popen[str]) -> None:
    """End a program that `start` started, and wait until it is gone."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    with _lock:
        _started.discard(process)


def kill_all() -> None:
    """Kill what `start` started and nobody stopped; for a command that must end now."""
    with _lock:
        left = list(_started)
    for process in left:
        with contextlib.suppress(OSError):
            process.kill()
