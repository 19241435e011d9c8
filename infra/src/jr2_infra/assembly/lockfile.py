"""Which package manager locked the Instance: exactly one, and never a guess.

Source: seed 003 (the lockfile rules) in the words of design §3.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jr2.errors import StepFailed

LOCKFILES: Final = (
    ("uv", "uv.lock"),
    ("poetry", "poetry.lock"),
    ("pdm", "pdm.lock"),
    ("pylock", "pylock.toml"),
)


@dataclass(frozen=True, slots=True)
class Lockfile:
    """The one lockfile of an Instance."""

    manager: str
    path: Path


def choose_lockfile(folder: str, present: frozenset[str]) -> tuple[str, str]:
    """Return the manager and the file name of the one lockfile among the files `present`.

    Args:
        folder: the Instance folder, for the message.
        present: names of the files in it.

    Raises:
        StepFailed: a Pipfile.lock, lockfiles of two managers, or none.
    """
    if "Pipfile.lock" in present:
        raise StepFailed(
            f"{folder} has a Pipfile.lock, and pipenv is not supported — use uv, poetry, or pdm"
        )
    found = [(manager, name) for manager, name in LOCKFILES if name in present]
    if len(found) > 1:
        listed = "; ".join(f"{manager}: {name}" for manager, name in found)
        raise StepFailed(
            f"{folder} holds lockfiles from more than one package manager ({listed}) — delete the"
            " stale one, so the bundle installs the dependency graph the instance really uses"
        )
    if not found:
        raise StepFailed(
            f"{folder} has no lockfile — jr2 installs the instance's dependencies from uv"
            " (uv.lock), poetry (poetry.lock), pdm (pdm.lock) or a pylock.toml; run your package"
            " manager's lock and commit the lockfile it writes"
        )
    return found[0]


def find_lockfile(root: Path) -> Lockfile:
    """Return the Instance's lockfile; refusals as `choose_lockfile`."""
    names = frozenset(entry.name for entry in root.iterdir())
    manager, name = choose_lockfile(str(root), names)
    if not (root / name).is_file():
        raise StepFailed(f"{root / name} is no file")
    return Lockfile(manager, root / name)
