"""The Instance's own files in its Assembly: config, Workflows, Charts and packages beside them.

Read into memory in one pass, so that the hash and the archive are of the same bytes even while an
editor saves. What a machine writes on its own (caches, environments, version control) and what
must not leave the laptop (`.env*`) is never read, and neither is what is no file: a pipe, a socket.

Source: design §5.5.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from jr2 import names
from jr2.errors import StepFailed
from jr2.tree_hash import Entry

from ..facts import kit

_NEVER: Final = frozenset(
    {"__pycache__", "node_modules", "venv", "build", "dist", "uv.lock", "poetry.lock", "pdm.lock"}
)
_NEVER_SUFFIXES: Final = (".pyc", ".pyo", ".egg-info")


def is_carried(path: PurePosixPath, exclude: tuple[str, ...] = ()) -> bool:
    """Whether a file below the Instance folder belongs into the Assembly by its name alone.

    Args:
        path: relative to the Instance folder.
        exclude: the globs of `[tool.jr2] exclude`.
    """
    for part in path.parts:
        if part.startswith(".") or part in _NEVER or part.endswith(_NEVER_SUFFIXES):
            return False
    return not any(
        path.match(glob) or any(parent.match(glob) for parent in path.parents) for glob in exclude
    )


def _tops(root: Path) -> Iterator[Path]:
    """Yield what of the folder's first level an Assembly may carry."""
    for place in sorted(root.iterdir()):
        if place.name in {names.CONFIG_FILE, names.WORKFLOWS_DIR, names.CHARTS_DIR}:
            yield place
        elif place.is_dir() and (place / "__init__.py").is_file():
            yield place
        elif place.is_file() and place.suffix == ".py":
            yield place


def _files(place: Path) -> Iterator[Path]:
    if place.is_symlink() or not place.is_dir():
        yield place
        return
    for folder, folders, files in os.walk(place):
        folders[:] = [n for n in folders if not n.startswith(".") and n not in _NEVER]
        links = [n for n in folders if os.path.islink(os.path.join(folder, n))]
        for name in [*files, *links]:
            yield Path(folder, name)


def excluded_globs(root: Path, project: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what `[tool.jr2] exclude` leaves out of the Assembly.

    Args:
        root: the Instance folder, for the message.
        project: its pyproject.toml.

    Raises:
        StepFailed: it is no list of texts.
    """
    globs = kit.table(project, "tool", "jr2").get("exclude", [])
    if not isinstance(globs, list) or not all(isinstance(glob, str) for glob in globs):
        raise StepFailed(f"{root}/pyproject.toml at tool.jr2.exclude: a list of globs is needed")
    return tuple(globs)


def own_entries(root: Path, exclude: tuple[str, ...] = ()) -> list[Entry]:
    """Return the Instance's own files as entries below `instance/`.

    Raises:
        StepFailed: a file that belongs into the Assembly cannot be read.
    """
    entries: list[Entry] = []
    for top in _tops(root):
        for place in _files(top):
            path = PurePosixPath(place.relative_to(root).as_posix())
            if not is_carried(path, exclude):
                continue
            target = f"{names.ASSEMBLY_INSTANCE}/{path}"
            try:
                if place.is_symlink():
                    entries.append(Entry(target, "link", os.fsencode(os.readlink(place))))
                    continue
                if not place.is_file():
                    if place.exists():
                        # A pipe, a socket or a device: it is of this machine, and holds nothing.
                        continue
                    raise StepFailed(f"cannot stage the Assembly: {place} is gone")
                kind = (
                    "exec" if os.access(place, os.X_OK) and place.stat().st_mode & 0o100 else "file"
                )
                entries.append(Entry(target, kind, place.read_bytes()))
            except OSError as error:
                raise StepFailed(
                    f"cannot stage the Assembly: {place} cannot be read ({error.strerror})"
                ) from error
    return entries
