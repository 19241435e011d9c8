"""The layers above Debian: the Kit's closure, the packages of the services, and our sources.

Wheels come hashed from `requirements/`, for the image's platform and Python, never built here.

Source: design §6.1 and §4.4.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from jr2 import names
from jr2.errors import StepFailed

from ... import processes
from . import recipe

_STRAY = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
"""Files of a dist-info folder that tell how, when or from where it was installed."""


def requirement_blocks(text: str) -> dict[str, str]:
    """Split a hashed requirements file into distribution name → its lines."""
    blocks: dict[str, str] = {}
    name = ""
    for line in text.splitlines(keepends=True):
        if line[:1].strip() and not line.startswith("#"):
            name = line.split("==", 1)[0].strip()
            blocks[name] = line
        elif name and line.strip() and not line.startswith("#"):
            blocks[name] += line
    return blocks


def services_requirements(image: str, kit: str) -> str:
    """Return the requirements of an image without those that the Kit's layer holds already."""
    held = requirement_blocks(kit)
    return "".join(block for name, block in requirement_blocks(image).items() if name not in held)


def install_wheels(uv: Path, requirements: str, target: Path, architecture: str) -> None:
    """Install hashed requirements into a folder, for the image's platform and Python.

    Args:
        uv: the program.
        requirements: the text of a hashed requirements file, complete: nothing is resolved.
        target: the folder.
        architecture: the OCI name of the image's architecture.

    Raises:
        StepFailed: uv failed; its words stand in the text.
    """
    target.mkdir(parents=True)
    listed = target.with_name(f"{target.name}.txt")
    listed.write_text(requirements)
    options = [
        *("--quiet", "--no-deps", "--require-hashes", "--no-compile-bytecode"),
        *("--only-binary", ":all:", "--link-mode", "copy", "--python", sys.executable),
        *("--python-version", recipe.PYTHON_VERSION),
        *("--python-platform", recipe.PLATFORMS[architecture]),
        *("--target", str(target), "--requirement", str(listed)),
    ]
    done = processes.run(
        [uv, "pip", "install", *options],
        # The folder is outside the checkout, so no project's settings are read.
        cwd=target.parent,
        env={name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
    )
    listed.unlink()
    if done.returncode != 0:
        raise StepFailed(f"uv cannot install the packages of a Kit image:\n{done.stderr.strip()}")
    tidy_packages(target)


def tidy_packages(target: Path) -> None:
    """Remove from an installed folder what tells how it was installed, and its programs."""
    shutil.rmtree(target / "bin", ignore_errors=True)
    for name in (".lock", ".gitignore", "CACHEDIR.TAG"):
        (target / name).unlink(missing_ok=True)
    for info in target.glob("*.dist-info"):
        for name in _STRAY:
            (info / name).unlink(missing_ok=True)


def source_files(checkout: Path, image: recipe.KitImage) -> Iterator[tuple[str, Path]]:
    """Yield the sources of an image: path in the image without its first `/`, and the file."""
    kit = checkout / "runtime/kit/src/jr2"
    services = checkout / "runtime/services/src/jr2_runtime"
    yield from _below(kit, f"{names.KIT_PATH[1:]}/jr2", leaves_out={"docs"})
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
        launcher.write_text(recipe.LAUNCHER.format(module=module))
        launcher.chmod(0o755)
    for folder, name in ((names.KIT_PATH, "jr2"), (names.SERVICES_PATH, "jr2_runtime")):
        info = stage / folder[1:] / f"{name}-{names.KIT_VERSION}.dist-info"
        info.mkdir()
        info.joinpath("METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {names.KIT_VERSION}\n"
        )
