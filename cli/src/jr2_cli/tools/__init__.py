"""The programs that jr2 needs beside Python: where they are, and how they get there.

`locate` and `require` are what the rest of the command uses; `jr2 tools` shows and installs.

Source: design §7.
"""

from __future__ import annotations

from pathlib import Path

from jr2.errors import StepFailed

from . import catalogue
from .lookup import Found, find

__all__ = ["locate", "missing_text", "require"]


def locate(name: str) -> Path | None:
    """Find a program on PATH, where its version is checked, or else in our cache.

    Args:
        name: a name of the table, such as `kubectl`.

    Raises:
        KeyError: the table has no program of this name.
    """
    return find(catalogue.BY_NAME[name]).path


def require(name: str) -> Path:
    """Find a program, or say how it is installed.

    Args:
        name: a name of the table.

    Raises:
        StepFailed: it is neither on PATH, at a version that will do, nor in our cache.
        KeyError: the table has no program of this name.
    """
    found = find(catalogue.BY_NAME[name])
    if found.path is None:
        raise StepFailed(missing_text([found]))
    return found.path


def missing_text(found: list[Found]) -> str:
    """The text of an error for programs that are nowhere."""
    names = [item.program.name for item in found]
    lines = [
        f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} not installed — run "
        f"`jr2 tools install{' ' + ' '.join(names) if len(names) < 4 else ''}`, then try again"
    ]
    lines += [
        f"  {item.passed.path} {item.passed.reason}"
        + (f" (it is {item.passed.version})" if item.passed.version else "")
        for item in found
        if item.passed is not None
    ]
    return "\n".join(lines)
