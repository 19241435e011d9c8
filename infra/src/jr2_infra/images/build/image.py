"""One Kit image from a checkout: its four layers, then its archive, then a start of its Python.

Source: design §6.1.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from jr2 import names
from jr2.errors import StepFailed
from jr2.tree_hash import Entry, tree_hash

from ... import processes
from ..store import LayerCache
from . import chroot, content, debian, oci, recipe
from .layers import Layer, pack_folder

_DEBIAN_RECIPE = ("recipe.py", "debian.py", "sources_list.py", "chroot.py", "layers.py")
_HERE = Path(__file__).parent
_IMPORT_ALL = """
import importlib, pkgutil
import jr2, jr2_runtime
for package in (jr2, jr2_runtime):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """What every image of one run of the build shares.

    Args:
        checkout: the root folder of the repository.
        architecture: the OCI name of the machine's architecture.
        uv: the program.
        cache: the finished layers.
        say: prints one line about what takes long.
    """

    checkout: Path
    architecture: str
    uv: Path
    cache: LayerCache
    say: Callable[[str], None]

    def requirements(self, name: str) -> Path:
        """Return the place of one of the pinned lists."""
        return self.checkout / "requirements" / f"{name}.txt"

    def key(self, recipes: Iterable[str], requirements: Iterable[str]) -> str:
        """Return the cache key of a layer that follows from these files of ours."""
        parts = [Entry(f"build/{name}", "file", _HERE / name) for name in recipes]
        parts += [Entry(name, "file", self.requirements(name)) for name in requirements]
        return tree_hash(parts, salt=self.architecture)[: names.SHORT_HASH]

    def _debian_key(self) -> str:
        return self.key(_DEBIAN_RECIPE, ["debian-base"])

    def _make_debian(self, folder: Path) -> Layer:
        self.say(f"Debian {recipe.DEBIAN_SUITE}: fetching and extracting packages")
        packages = debian.extract_debian(folder / "root")
        folder.joinpath("packages.txt").write_text("".join(f"{line}\n" for line in packages))
        return pack_folder(folder / "root", folder / "layer.tar")

    def debian(self) -> Path:
        """Return the cache entry of the lowest layer: its tar, its `root` and `packages.txt`."""
        return self.cache.entry("debian", self._debian_key(), self._make_debian)

    def refresh_debian(self) -> None:
        """Resolve the packages of the lowest layer anew and commit to them in `requirements/`."""
        partial = self.cache.root / "debian-new.part"
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        layer = self._make_debian(partial)
        self.requirements("debian-base").write_text(partial.joinpath("packages.txt").read_text())
        self.cache.finish(partial, layer, self.cache.root / f"debian-{self._debian_key()}")

    def debian_drift(self) -> list[str]:
        """Return what the packages of the layer differ in from those that the checkout lists."""
        listed = set(self.requirements("debian-base").read_text().split())
        resolved = set(self.debian().joinpath("packages.txt").read_text().split())
        return sorted(resolved - listed)

    def _wheels(self, name: str, files: list[str], requirements: str, path: str) -> Layer:
        root = self.debian() / "root"

        def make(folder: Path) -> Layer:
            self.say(f"{name}: installing packages")
            stage = chroot.open_stage(root, self.cache.work)
            content.install_wheels(
                self.uv, requirements, stage / path.lstrip("/"), self.architecture
            )
            chroot.compile_stage(stage)
            return pack_folder(stage, folder / "layer.tar")

        key = self.key([*_DEBIAN_RECIPE, "content.py"], ["debian-base", *files])
        return self.cache.layer(self.cache.entry(name, key, make))

    def layers(self, image: recipe.KitImage) -> list[Layer]:
        """Return the four layers of an image, the lowest first; the last is always made anew."""
        debian_folder = self.debian()
        kit = self.requirements("kit").read_text()
        own = self.requirements(image.requirements).read_text()
        services = content.services_requirements(own, kit)
        lower = [
            self.cache.layer(debian_folder),
            self._wheels("kit", ["kit"], kit, names.KIT_PATH),
            self._wheels(
                image.requirements, ["kit", image.requirements], services, names.SERVICES_PATH
            ),
        ]
        stage = chroot.open_stage(debian_folder / "root", self.cache.work)
        content.place_sources(self.checkout, image, stage)
        chroot.compile_stage(stage)
        sources = self.cache.root / f"sources-{image.name}.part"
        shutil.rmtree(sources, ignore_errors=True)
        return [*lower, pack_folder(stage, sources / "layer.tar")]

    def build(self, image: recipe.KitImage, *, ref: str, target: Path) -> oci.Archived:
        """Build an image and write its archive under `target`, named `ref` once it is imported.

        Raises:
            StepFailed: a part cannot be made, a module of ours cannot be imported in the image, or
                it is larger than a Kit image may be.
        """
        layers = self.layers(image)
        unpacked = sum(layer.unpacked for layer in layers)
        if unpacked > recipe.UNPACKED_LIMIT:
            raise StepFailed(
                f"{image.name} holds {unpacked >> 20} MiB, and a Kit image may hold "
                f"{recipe.UNPACKED_LIMIT >> 20} MiB"
            )
        self._try_programs(image, layers)
        return oci.write_archive(
            image,
            ref=ref,
            architecture=self.architecture,
            layers=layers,
            target=target,
        )

    def _try_programs(self, image: recipe.KitImage, layers: list[Layer]) -> None:
        """Import all that is ours in the image, so that a lost package is not found in a pod."""
        root = chroot.open_stage(self.debian() / "root", self.cache.work).parent
        for layer in layers[1:]:
            unpacked = processes.run(["tar", "-xf", layer.path, "-C", root])
            if unpacked.returncode != 0:
                raise StepFailed(f"cannot unpack {layer.path}: {unpacked.stderr.strip()}")
        for launcher, _ in image.programs:
            source = (root / launcher[1:]).read_text().replace("sys.exit(main())", _IMPORT_ALL)
            chroot.run_inside(root, [recipe.PYTHON, "-ISB", "-c", source])
        shutil.rmtree(root)
