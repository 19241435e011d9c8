"""The one module of this package that starts other programs.

A program is started from a list, never through a shell, with an environment that its caller wrote
down, and its stdin is closed unless the caller gives one.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import bound, inherited

if TYPE_CHECKING:
    import asyncio

_GRACE_SECONDS = 5.0
"""Seconds that a program has to end by itself."""

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
    slow: tuple[float, Callable[[], None]] | None = None,
) -> Finished:
    """Run a program to its end and return what it said.

    Args:
        argv: the program and its arguments.
        env: the whole environment; `None` hands over ours without what `.env` filled.
        cwd: the folder it runs in.
        stdin: text for its standard input; `None` closes it.
        timeout: seconds; the program is killed when they have passed.
        slow: seconds, less than `timeout`, and what is called once when they have passed.

    Raises:
        OSError: the program cannot be started.
        subprocess.TimeoutExpired: it took longer than `timeout`; it holds what was said till then.
    """
    started = time.monotonic()
    with subprocess.Popen(
        [str(part) for part in argv],
        env=inherited.environment() if env is None else dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as child:
        try:
            if slow is not None:
                try:
                    stdout, stderr = child.communicate(stdin, slow[0])
                    return Finished(child.returncode, stdout, stderr)
                except subprocess.TimeoutExpired:
                    slow[1]()
            left = None if timeout is None else timeout - (time.monotonic() - started)
            stdout, stderr = child.communicate(None if slow is not None else stdin, left)
        except BaseException:
            child.kill()
            raise
    return Finished(child.returncode, stdout, stderr)


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
        env=inherited.environment() if env is None else dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=new_session,
        pass_fds=tuple(pass_fds),
    )


def stop(process: subprocess.Popen[str]) -> None:
    """End a program that `start` started, and wait until it is gone; its pipes stay the caller's."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run_family(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    cwd: Path,
    heard: Callable[[str], None] | None = None,
) -> Finished:
    """Run a program that starts others, and end all of them when we are interrupted.

    When we are killed, the kernel kills the program; what it had started ends its own work.

    Args:
        argv: the program and its arguments.
        env: the whole environment.
        cwd: the folder it runs in.
        heard: is given each line of its standard error, without the line's end, while it runs.

    Raises:
        OSError: the program cannot be started.
    """
    child = subprocess.Popen(
        bound_to_us(argv, signal.SIGKILL, env=env),
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        stdout, stderr = child.communicate() if heard is None else _listen(child, heard)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise
    finally:
        # Only now: a stream that another thread reads is closed when the program has ended.
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()
    return Finished(child.returncode, stdout, stderr)


def _listen(child: subprocess.Popen[str], heard: Callable[[str], None]) -> tuple[str, str]:
    """Read both streams to their ends, the one of errors line by line."""
    assert child.stdout is not None
    assert child.stderr is not None
    said: list[str] = []
    # Read beside the other one, or a program that fills both pipes would wait for ever.
    reader = threading.Thread(target=lambda out: said.append(out.read()), args=(child.stdout,))
    reader.start()
    lines = []
    for line in child.stderr:
        lines.append(line)
        heard(line.rstrip("\n"))
    reader.join()
    child.wait()
    return "".join(said), "".join(lines)


def bound_to_us(
    argv: Sequence[str | Path], number: signal.Signals, *, env: Mapping[str, str] | None = None
) -> list[str]:
    """Return the command that runs a program which the kernel ends after us.

    The program has the process id of what is started, and its own name in the process list.

    Args:
        argv: the program and its arguments.
        number: the signal that it gets when the thread that started it has ended.
        env: where the program is looked up; `None` for ours.

    Returns:
        The command itself where the kernel cannot do it.

    Raises:
        FileNotFoundError: there is no such program.
    """
    command = [str(part) for part in argv]
    if sys.platform != "linux":
        return command
    found = shutil.which(command[0], path=(os.environ if env is None else env).get("PATH"))
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    return [
        sys.executable,
        "-I",
        "-S",
        bound.__file__,
        str(os.getpid()),
        str(int(number)),
        *command,
    ]


def detach(argv: Sequence[str | Path], *, env: Mapping[str, str], cwd: Path, log: Path) -> int:
    """Start a program in a session of its own that outlives us.

    Args:
        argv: the program and its arguments.
        env: the whole environment.
        cwd: the folder it runs in.
        log: the file that both of its streams are appended to.

    Returns:
        The process id.

    Raises:
        OSError: the program cannot be started, or the log cannot be opened.
    """
    with log.open("ab") as output:
        child = subprocess.Popen(
            [str(part) for part in argv],
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    # Nobody here waits for it: without this the interpreter warns that it still runs.
    child.returncode = 0
    return child.pid


async def spawn(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path
) -> asyncio.subprocess.Process:
    """Start a program that the caller watches, in a process group of its own.

    Args:
        argv: the program and its arguments.
        env: the whole environment.
        cwd: the folder it runs in.
        log: the file that both of its streams are appended to.

    Raises:
        OSError: the program cannot be started, or the log cannot be opened.
    """
    import asyncio  # only a supervisor needs it, and it takes its time to load

    with log.open("ab") as output:
        return await asyncio.create_subprocess_exec(
            *argv,
            env=dict(env),
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            process_group=0,
        )
