"""What an Instance of a test has from the one made before it: caches that follow from files alone.

The bytecode of the installed packages and the cache of the type checker take several seconds of
computing for each folder. Both tools look at their sources again before they believe a cache, so
nothing that a test shows depends on it. The first Instance of a session has none, and the one of
the demo neither.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

_CHECKER: Final = ".mypy_cache"
_BYTECODE: Final = "__pycache__"


def give_head_start(folder: Path, before: Path) -> None:
    """Copy the caches of an Instance into another one that has its packages already.

    Args:
        folder: the Instance folder that is new.
        before: an Instance folder in which commands have run.
    """
    if (before / _CHECKER).is_dir():
        shutil.copytree(before / _CHECKER, folder / _CHECKER)
    for cache in (before / ".venv").glob(f"lib/python3*/site-packages/**/{_BYTECODE}"):
        module = folder / cache.parent.relative_to(before)
        # The packages of the two differ where a test changed what one of them depends on.
        if module.is_dir():
            shutil.copytree(cache, module / _BYTECODE, dirs_exist_ok=True)
