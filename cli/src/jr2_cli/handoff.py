"""The Handoff: in an Instance folder, the global `jr2` runs the Instance's own.

The command that runs is thus always the one that the Instance pins. The Instance's own `jr2` takes
the place of this process, with the same arguments, streams and terminal, so its exit code and its
signals are this command's.

Once it has the place of this process, nobody can say what went wrong with its start. So the
Instance's interpreter is asked before whether it starts at all and finds the command: an environment
may have lost its settings, its packages or the Python that it was made from.

Source: seed 000 (Handoff), spec/converge.md §2.4, design §3.
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from typing import NoReturn

from jr2 import names

VENV = ".venv"
_FOUND = 0
_NOT_FOUND = 3
_ASK = (
    "import importlib.util, sys; "
    f"sys.exit({_NOT_FOUND} if importlib.util.find_spec('jr2_cli') is None else {_FOUND})"
)
_SECONDS = 20.0
"""Seconds that an interpreter has to answer; one that is slower is left to start."""

_origin: str | None = None


class Broken(Exception):
    """The environment of the Instance runs no command; the text names the place and the fix."""


def own_command(root: Path, prefix: str = sys.prefix) -> Path | None:
    """Return the `jr2` of the Instance when it is another one than this, else `None`.

    Args:
        root: the Instance folder.
        prefix: the environment that this command runs in.

    Raises:
        Broken: the environment of the Instance cannot be read.
    """
    command = root / VENV / "bin" / "jr2"
    try:
        if not command.exists():
            return None
    except OSError as error:
        raise Broken(
            f"cannot read {error.filename}: {error.strerror} — let yourself read {root / VENV}, "
            f"or {_anew(root / VENV)}"
        ) from error
    if os.path.realpath(prefix) == os.path.realpath(root / VENV):
        return None
    return command


def take_origin(environ: MutableMapping[str, str] = os.environ) -> str | None:
    """Return the `<version> <path>` of the global `jr2` that handed off to this one.

    It is taken out of the environment, so that a program that this one starts does not think that
    it was handed off to; `origin` gives it again.
    """
    global _origin
    _origin = environ.pop(names.ENV_HANDOFF_FROM, None)
    return _origin


def origin() -> str | None:
    """Return what `take_origin` found when the command started."""
    return _origin


def hand_off(command: Path, arguments: Sequence[str]) -> NoReturn:
    """Run the Instance's own `jr2` in the place of this process.

    Raises:
        Broken: it cannot be started.
    """
    environment = command.parents[1]
    problem = _problem(command.with_name("python"))
    if problem is not None:
        raise Broken(f"cannot run {command}: {problem} — {_anew(environment)}")
    own = Path(__file__).resolve().parent
    environ = {**os.environ, names.ENV_HANDOFF_FROM: f"{names.KIT_VERSION} {own}"}
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(command, [str(command), *arguments], environ)  # noqa: S606 (a list, no shell)
    except OSError as error:
        # Its first line names a Python, which may be what is gone: the file itself was found.
        raise Broken(f"cannot run {command}: {error.strerror} — {_anew(environment)}") from error


def _problem(python: Path) -> str | None:
    """Say why an interpreter cannot run the command, or `None`."""
    if not os.access(python, os.X_OK) or python.is_dir():
        # Then the command's own first line says whether that matters.
        return None
    from jr2_infra import processes

    try:
        asked = processes.run([python, "-I", "-c", _ASK], timeout=_SECONDS)
    except processes.TimeoutExpired:
        return None
    except OSError as error:
        return f"{python} does not start ({error.strerror})"
    if asked.returncode == _FOUND:
        return None
    if asked.returncode == _NOT_FOUND:
        return f"{python} finds no jr2_cli"
    said = [line.strip() for line in asked.stderr.splitlines() if line.strip()]
    ended = f"it ended with {asked.returncode}"
    return f"{python} does not start ({said[-1] if said else ended})"


def _anew(environment: Path) -> str:
    return f"make {environment} anew: install the Instance's dependencies (uv, poetry, or pdm)"
