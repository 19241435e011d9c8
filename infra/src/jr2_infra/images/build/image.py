"""One Kit image from a checkout: its layers, a start of its Python, its archive and its SBOM.

Source: design §6.1, ADR-0119.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from jr2 import names
from jr2.errors import StepFailed
from jr2.tree_hash import Entry, tree_hash

from ... import processes
from ..mirror import lists
from ..mirror.archive import Archive
from ..store import LayerCache
from . import chroot, compiled, content, oci, recipe, sbom, tree, wheels
from .debian import base, sets
from .debian.unpack import unpack
from .layers import Layer, pack_folder

_HERE = Path(__file__).parent
_ROOT_RECIPE: Final = ("debian/*.py", "recipe.py", "chroot.py", "layers.py")
_FROM_NAMES: Final = (
    recipe.USERS,
    recipe.PYTHON_MINOR,
    *(names.TREE_PATH, names.TREE_PYTHON, names.TREE_GIT, names.TREE_RIPGREP, names.TREE_INIT),
    *(names.KIT_PATH, names.SERVICES_PATH),
)
"""What the lower layers take from `jr2.names`; the rest of that file changes none of them."""

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
        archive: the Debian packages.
        say: prints one line about what takes long.
    """

    checkout: Path
    architecture: str
    uv: Path
    cache: LayerCache
    archive: Archive
    say: Callable[[str], None]
    _read: dict[str, tuple[lists.Package, ...]] = field(default_factory=dict)

    def requirements(self, name: str) -> Path:
        """Return the place of one of the pinned lists of wheels."""
        return self.checkout / "requirements" / f"{name}.txt"

    def _list_path(self, name: str) -> Path:
        return self.checkout / "requirements" / lists.file_name(name, self.architecture)

    def packages(self, name: str) -> tuple[lists.Package, ...]:
        """Read the committed list of a set of Debian packages.

        Raises:
            StepFailed: there is none for this architecture, or a line of it is wrong.
        """
        if name not in self._read:
            path = self._list_path(name)
            try:
                self._read[name] = lists.parse(path.read_text())
            except FileNotFoundError:
                raise StepFailed(
                    f"there is no list of Debian packages for {self.architecture}: {path} — "
                    "resolve it: scripts/build-kit-images --refresh"
                ) from None
            except ValueError as error:
                raise StepFailed(f"{path}: {error}") from error
        return self._read[name]

    def key(
        self,
        recipes: Iterable[str],
        requirements: Iterable[str],
        debian: Iterable[str],
        sources: Iterable[Entry] = (),
    ) -> str:
        """Return the cache key of a layer that follows from these files of ours."""
        places = sorted({place for pattern in recipes for place in _HERE.glob(pattern)})
        parts = [Entry(f"build/{place.relative_to(_HERE)}", "file", place) for place in places]
        parts += [Entry(name, "file", self.requirements(name)) for name in requirements]
        parts += [Entry(f"debian/{name}", "file", self._list_path(name)) for name in debian]
        parts += sources
        return tree_hash(parts, salt=f"{self.architecture} {_FROM_NAMES}")[: names.SHORT_HASH]

    def debian(self) -> Path:
        """Return the cache entry of the lowest layer: its tar, and its `root`."""
        packages = self.packages("base")

        def make(folder: Path) -> Layer:
            fetched = self.archive.fetch(packages)
            self.say(f"Debian {sets.SUITE}: extracting {len(fetched)} packages")
            (folder / "root").mkdir()
            base.make_base(fetched, folder / "root")
            return pack_folder(folder / "root", folder / "layer.tar")

        return self.cache.entry("debian", self.key(_ROOT_RECIPE, [], ["base"]), make)

    def userland(self) -> Path:
        """Return the cache entry of what the Harness image holds above the lowest layer."""
        below = self.debian() / "root"
        packages = self.packages("harness")

        def make(folder: Path) -> Layer:
            fetched = self.archive.fetch(packages)
            self.say(f"userland of the Harness: extracting {len(fetched)} packages")
            (folder / "root").mkdir()
            base.make_userland(fetched, folder / "root", below, self.cache.work)
            return pack_folder(folder / "root", folder / "layer.tar")

        key = self.key(_ROOT_RECIPE, [], ["base", "harness"])
        return self.cache.entry("userland", key, make)

    def tree(self) -> Path:
        """Return the cache entry of the tree that runs in any image."""
        roots = [self.debian() / "root", self.userland() / "root"]

        def make(folder: Path) -> Layer:
            doing = "Harness: making the tree that runs in any image"
            with self._workshop(sets.TOOLS, roots, doing) as root:
                made = tree.make_tree(root, "/usr/bin/patchelf")
                place = folder / "root" / names.TREE_SUBPATH
                place.parent.mkdir(parents=True)
                made.rename(place)
                tree.try_tree(folder / "root")
            return pack_folder(folder / "root", folder / "layer.tar")

        debian = [item.name for item in sets.TOOLS.from_the_lowest()]
        return self.cache.entry("tree", self.key([*_ROOT_RECIPE, "tree.py"], [], debian), make)

    def compiled(self) -> Path:
        """Return the cache entry of the machine code of the Kit's kernel: its tar, and its `root`."""
        roots, kit_packages = [self.debian() / "root"], self._kit_packages()
        kit = self.checkout / content.KIT_SOURCES

        def make(folder: Path) -> Layer:
            with self._workshop(sets.COMPILER, roots, "kernel: compiling") as root:
                _unpack_layer(self.cache.layer(kit_packages), root)
                listed = self.requirements("compiler").read_text()
                place = root / compiled.COMPILER_PATH[1:]
                wheels.install_wheels(self.uv, listed, place, self.architecture)
                (folder / "root").mkdir()
                compiled.compile_kit(root, kit, folder / "root")
            return pack_folder(folder / "root", folder / "layer.tar")

        # The types of a module that is not compiled decide the code of one that is.
        sources = [
            Entry(path, "file", place)
            for path, place in content.kit_files(self.checkout)
            if place.suffix == ".py"
        ]
        recipes = [*_ROOT_RECIPE, "wheels.py", "compiled.py"]
        debian = [item.name for item in sets.COMPILER.from_the_lowest()]
        key = self.key(recipes, ["kit", "compiler"], debian, sources)
        return self.cache.entry("compiled", key, make)

    @contextmanager
    def _workshop(
        self, tools: sets.PackageSet, roots: Sequence[Path], doing: str
    ) -> Iterator[Path]:
        """Make a throw-away root of other ones and of tools that no image holds.

        Args:
            tools: their packages.
            roots: the lower root file systems, the lowest first.
            doing: what is said meanwhile.
        """
        fetched = self.archive.fetch(self.packages(tools.name))
        self.say(doing)
        unpacked = self.cache.root / f"{tools.name}.part"
        shutil.rmtree(unpacked, ignore_errors=True)
        unpacked.mkdir()
        unpack(fetched, unpacked)
        base.overlay([*roots, unpacked], self.cache.work)
        yield self.cache.work
        for spent in (unpacked, self.cache.work):
            shutil.rmtree(spent)

    def _kit_packages(self) -> Path:
        """Return the cache entry of what the Kit imports."""
        kit = self.requirements("kit").read_text()
        return self._wheels("kit", ["kit"], kit, names.KIT_PATH)

    def _wheels(self, name: str, files: list[str], requirements: str, path: str) -> Path:
        root = self.debian() / "root"

        def make(folder: Path) -> Layer:
            self.say(f"{name}: installing packages")
            stage = chroot.open_stage(root, self.cache.work)
            installed = wheels.install_wheels(
                self.uv, requirements, stage / path.lstrip("/"), self.architecture
            )
            folder.joinpath("wheels.json").write_text(
                json.dumps([asdict(wheel) for wheel in installed])
            )
            chroot.compile_stage(stage)
            return pack_folder(stage, folder / "layer.tar")

        key = self.key([*_ROOT_RECIPE, "wheels.py"], files, ["base"])
        return self.cache.entry(name, key, make)

    def entries(self, image: recipe.KitImage) -> list[Path]:
        """Return the cache entries of an image's lower layers, the lowest first."""
        kit = self.requirements("kit").read_text()
        own = self.requirements(image.requirements).read_text()
        services = wheels.services_requirements(own, kit)
        found = [self.debian()]
        if image.has_tree:
            found += [self.userland(), self.tree()]
        found.append(self._kit_packages())
        if services:
            files = ["kit", image.requirements]
            found.append(self._wheels(image.requirements, files, services, names.SERVICES_PATH))
        if image.is_compiled:
            found.append(self.compiled())
        return found

    def _sources(self, image: recipe.KitImage) -> Layer:
        """Pack our own sources, which no cache keeps."""
        stage = chroot.open_stage(self.debian() / "root", self.cache.work)
        content.place_sources(self.checkout, image, stage)
        chroot.compile_stage(stage)
        place = self.cache.root / f"sources-{image.name}.part"
        shutil.rmtree(place, ignore_errors=True)
        return pack_folder(stage, place / "layer.tar")

    def build(
        self, image: recipe.KitImage, *, ref: str, content_hash: str, target: Path
    ) -> oci.Archived:
        """Build an image under `target`, named `ref` once it is imported, and its SBOM beside it.

        Raises:
            StepFailed: a part cannot be made, a module of ours cannot be imported in the image, it
                is larger than a Kit image may be, or the archive that is there under this name has
                another digest.
        """
        entries = self.entries(image)
        layers = [*map(self.cache.layer, entries), self._sources(image)]
        unpacked = sum(layer.unpacked for layer in layers)
        if unpacked > image.limit:
            raise StepFailed(
                f"{image.name} holds {unpacked >> 20} MiB, and it may hold {image.limit >> 20} MiB"
            )
        self._try_programs(image, layers)
        before = oci.archived_digest(target) if target.is_file() else None
        archived = oci.write_archive(
            image,
            ref=ref,
            content_hash=content_hash,
            architecture=self.architecture,
            layers=layers,
            target=target,
            must_be=before,
        )
        document = sbom.bill_of_materials(
            image,
            digest=archived.digest,
            architecture=self.architecture,
            packages=[package for name in image.debian for package in self.packages(name)],
            wheels=[wheel for entry in entries for wheel in _installed(entry)],
        )
        partial = target.with_name(f"{target.name}.part")
        partial.write_bytes(document)
        partial.replace(target.with_name(oci.sbom_name(target.name)))
        return archived

    def _try_programs(self, image: recipe.KitImage, layers: list[Layer]) -> None:
        """Import all that is ours in the image, so that a lost package is not found in a pod."""
        root = chroot.open_stage(self.debian() / "root", self.cache.work).parent
        for layer in layers[1:]:
            _unpack_layer(layer, root)
        if image.has_tree:
            # What a Sandbox mounts is all that its pod has of us: nothing else may be needed.
            alone = self.cache.root / "alone.part"
            shutil.rmtree(alone, ignore_errors=True)
            place = alone / names.TREE_SUBPATH
            place.parent.mkdir(parents=True)
            (root / names.TREE_SUBPATH).rename(place)
            shutil.rmtree(root)
            root = alone
        source = recipe.IMPORT_PATH + _IMPORT_ALL
        if image.is_compiled:
            source += compiled.IMPORT_COMPILED
        chroot.run_inside(root, [image.python, "-ISB", "-c", source])
        shutil.rmtree(root)


def _unpack_layer(layer: Layer, root: Path) -> None:
    done = processes.run(["tar", "-xf", layer.path, "-C", root])
    if done.returncode != 0:
        raise StepFailed(f"cannot unpack {layer.path}: {done.stderr.strip()}")


def _installed(entry: Path) -> list[wheels.Wheel]:
    """Return the wheels of a layer; a layer of Debian packages has none."""
    listed = entry / "wheels.json"
    if not listed.is_file():
        return []
    return [wheels.Wheel(**item) for item in json.loads(listed.read_text())]
