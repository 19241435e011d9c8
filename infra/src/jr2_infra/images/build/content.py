"""Our own sources and launchers: the highest layer of an image.

Source: design §6.1 and §4.4.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from jr2 import names

from . import recipe

KIT_SOURCES: Final = "runtime/kit/src/jr2"
"""The package `jr2`, below the root of a checkout."""


def kit_files(checkout: Path) -> Iterator[tuple[str, Path]]:
    """Yield the sources of the Kit: path in the image without its first `/`, and the file."""
    yield from _below(checkout / KIT_SOURCES, f"{names.KIT_PATH[1:]}/jr2", leaves_out={"docs"})


def source_files(checkout: Path, image: recipe.KitImage) -> Iterator[tuple[str, Path]]:
    """Yield the sources of an image: path in the image without its first `/`, and the file."""
    services = checkout / "runtime/services/src/jr2_runtime"
    yield from kit_files(checkout)
    yield from _below(
        services, f"{names.SERVICES_PATH[1:]}/jr2_runtime", leaves_out=image.leaves_out
    )


def _below(root: Path, prefix: str, *, leaves_out: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield what is shipped below `root`; caches and what an editor hides are not."""
    left_out = set(leaves_out)
    for folder, folders, files in os.walk(root):
        at_root = Path(folder) == root
        folders[:] = sorted(
            name
            for name in folders
            if name != "__pycache__" and name[0] != "." and not (at_root and name in left_out)
        )
        for name in sorted(files):
            if name[0] != "." and not name.endswith((".pyc", ".md", "~")):
                place = Path(folder, name)
                yield f"{prefix}/{place.relative_to(root).as_posix()}", place


def place_sources(checkout: Path, image: recipe.KitImage, stage: Path) -> None:
    """Put our sources and the launchers of an image below `stage`."""
    for path, place in source_files(checkout, image):
        target = stage / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(place, target)
    for path, module in image.programs:
        launcher = stage / path[1:]
        launcher.parent.mkdir(parents=True, exist_ok=True)
        launcher.write_text(recipe.LAUNCHER.format(python=image.python, module=module))
        launcher.chmod(0o755)
    for folder, name in ((names.KIT_PATH, "jr2"), (names.SERVICES_PATH, "jr2_runtime")):
        info = stage / folder[1:] / f"{name}-{names.KIT_VERSION}.dist-info"
        info.mkdir()
        info.joinpath("METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {names.KIT_VERSION}\n"
        )
