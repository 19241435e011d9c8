"""What builds of Kit images keep between them: layers, archives, and a lock.

An entry is complete under its name or absent, so a build that was killed leaves nothing that a
later one trusts. One build at a time holds the lock.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from .build.layers import Layer
from .build.oci import sbom_name

KEPT_LAYERS = 3
KEPT_ARCHIVES = 6


@contextmanager
def locked(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of a cache folder; `waiting` is called once when another build holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    with folder.joinpath("lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


class LayerCache:
    """Folders of finished layers below `root`, each named `<name>-<key>`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)

    @property
    def work(self) -> Path:
        """A place for what a build throws away, on the same file system as the layers."""
        return self.root / "work"

    def entry(self, name: str, key: str, make: Callable[[Path], Layer]) -> Path:
        """Return the folder of a layer, made by `make` in an empty folder when it is absent."""
        folder = self.root / f"{name}-{key}"
        if not folder.joinpath("layer.json").is_file():
            partial = self.root / f"{name}-{key}.part"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            self.finish(partial, make(partial), folder)
        folder.touch()
        return folder

    def finish(self, partial: Path, layer: Layer, folder: Path) -> None:
        """Give a folder that was made elsewhere below the root its place in the cache."""
        facts = asdict(layer) | {"path": "layer.tar"}
        partial.joinpath("layer.json").write_text(json.dumps(facts))
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)

    def layer(self, folder: Path) -> Layer:
        """Read the layer of an entry."""
        facts = json.loads(folder.joinpath("layer.json").read_text())
        return Layer(**facts | {"path": folder / facts["path"]})

    def prune(self) -> None:
        """Remove what was not used by the last builds, and what a killed build left."""
        shutil.rmtree(self.work, ignore_errors=True)
        kinds: dict[str, list[Path]] = {}
        for folder in self.root.iterdir():
            if folder.suffix == ".part":
                shutil.rmtree(folder, ignore_errors=True)
            else:
                kinds.setdefault(folder.name.rpartition("-")[0], []).append(folder)
        for folders in kinds.values():
            for folder in _oldest(folders, KEPT_LAYERS):
                shutil.rmtree(folder, ignore_errors=True)


def prune_archives(folder: Path) -> None:
    """Remove all but the newest archives of each image, and what stood beside them."""
    kinds: dict[str, list[Path]] = {}
    for archive in folder.glob("*.oci.tar"):
        kinds.setdefault(archive.name.rpartition("-")[0], []).append(archive)
    for archives in kinds.values():
        for archive in _oldest(archives, KEPT_ARCHIVES):
            archive.unlink(missing_ok=True)
            archive.with_name(sbom_name(archive.name)).unlink(missing_ok=True)


def _oldest(paths: list[Path], kept: int) -> list[Path]:
    return sorted(paths, key=lambda path: path.stat().st_mtime_ns, reverse=True)[kept:]
