"""The one module of this package that starts other programs.

A program is started from a list, never through a shell, with an environment that its caller wrote
down, and its stdin is closed unless the caller gives one.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TimeoutExpired = subprocess.TimeoutExpired
"""What `run` raises when its time has passed; named here, since only this module imports it."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A program that ended."""

    returncode: int
    stdout: str
    stderr: str


def run(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    timeout: float | None = None,
) -> Finished:
    """Run a program to its end and return what it said.

    Args:
        argv: the program and its arguments.
        env: the whole environment; `None` hands over ours.
        cwd: the folder it runs in.
        stdin: text for its standard input; `None` closes it.
        timeout: seconds; the program is killed when they have passed.

    Raises:
        OSError: the program cannot be started.
        subprocess.TimeoutExpired: it took longer than `timeout`.
    """
    done = subprocess.run(
        [str(part) for part in argv],
        env=None if env is None else dict(env),
        cwd=cwd,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def start(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    new_session: bool = False,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[str]:
    """Start a program whose output the caller reads; both streams come through one pipe each."""
    return subprocess.Popen(
        [str(part) for part in argv],
        env=None if env is None else dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=new_session,
        pass_fds=tuple(pass_fds),
    )
