"""The Handoff: in an Instance folder, the global `jr2` runs the Instance's own.

The command that runs is thus always the one that the Instance pins. The Instance's own `jr2` takes
the place of this process, with the same arguments, streams and terminal, so its exit code and its
signals are this command's.

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

_origin: str | None = None


def own_command(root: Path, prefix: str = sys.prefix) -> Path | None:
    """Return the `jr2` of the Instance when it is another one than this, else `None`.

    Args:
        root: the Instance folder.
        prefix: the environment that this command runs in.
    """
    command = root / VENV / "bin" / "jr2"
    if not command.exists():
        return None
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
        OSError: it cannot be started.
    """
    own = Path(__file__).resolve().parent
    environ = {**os.environ, names.ENV_HANDOFF_FROM: f"{names.KIT_VERSION} {own}"}
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(command, [str(command), *arguments], environ)  # noqa: S606 (a list, no shell)
