"""The packages of an image: wheels from the hashed lists, for its platform, never built here.

Source: design §6.1.
"""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jr2.errors import StepFailed

from ... import processes
from . import recipe

_STRAY: Final = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
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


@dataclass(frozen=True, slots=True, order=True)
class Wheel:
    """One wheel, named by its content.

    Args:
        name: of the distribution, normalised.
        version: as its index writes it.
        sha256: 64 hex digits of the file.
        file: its name.
    """

    name: str
    version: str
    sha256: str
    file: str


def choose_wheels(resolved: str, requirements: str) -> tuple[Wheel, ...]:
    """Return the one wheel that an image gets of each pin.

    Where several fit, one with machine code wins over one for any platform, so that the choice
    hangs neither on the index's order nor on uv's.

    Args:
        resolved: a `pylock.toml` of the pins for the image's platform and Python.
        requirements: the hashed requirements that allow it.

    Raises:
        StepFailed: no wheel fits, or the one that does is not among the hashes.
    """
    allowed = requirement_blocks(requirements)
    chosen = []
    for package in tomllib.loads(resolved).get("packages", []):
        name = package["name"]
        found = [
            Wheel(name, package["version"], entry["hashes"]["sha256"], _file_name(entry))
            for entry in package.get("wheels", [])
        ]
        if not found:
            raise StepFailed(f"{name} {package['version']} has no wheel for the Kit images")
        best = min(found, key=lambda wheel: (wheel.file.endswith("-any.whl"), wheel.file))
        if best.sha256 not in allowed.get(name, ""):
            raise StepFailed(
                f"the index gives {best.file} with another digest than requirements/ commit to"
            )
        chosen.append(best)
    return tuple(sorted(chosen))


def _file_name(entry: Mapping[str, Any]) -> str:
    return str(entry.get("name") or entry["url"].rpartition("/")[2])


def install_wheels(
    uv: Path, requirements: str, target: Path, architecture: str
) -> tuple[Wheel, ...]:
    """Install hashed requirements into a folder, for the image's platform and Python.

    Args:
        uv: the program.
        requirements: the text of a hashed requirements file, complete: nothing is resolved.
        target: the folder.
        architecture: the OCI name of the image's architecture.

    Returns:
        What was installed.

    Raises:
        StepFailed: uv failed; its words stand in the text.
    """
    target.mkdir(parents=True)
    listed = target.with_name(f"{target.name}.txt")
    listed.write_text(requirements)
    platform = [
        *("--quiet", "--no-deps", "--only-binary", ":all:"),
        *("--python-version", recipe.PYTHON_VERSION),
        *("--python-platform", recipe.PLATFORMS[architecture]),
    ]
    compiled = ["pip", "compile", "--format", "pylock.toml", "--no-header", *platform, str(listed)]
    wheels = choose_wheels(_run_uv(uv, compiled, target.parent), requirements)
    # One hash for each pin, so that what is recorded is what is installed.
    listed.write_text(
        "".join(f"{item.name}=={item.version} --hash=sha256:{item.sha256}\n" for item in wheels)
    )
    options = [
        *("--require-hashes", "--no-compile-bytecode", "--link-mode", "copy"),
        *("--python", sys.executable, "--target", str(target), "--requirement", str(listed)),
    ]
    _run_uv(uv, ["pip", "install", *platform, *options], target.parent)
    listed.unlink()
    tidy_packages(target)
    return wheels


def _run_uv(uv: Path, arguments: Sequence[str], folder: Path) -> str:
    done = processes.run(
        [uv, *arguments],
        # The folder is outside the checkout, so no project's settings are read.
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"},
    )
    if done.returncode != 0:
        raise StepFailed(f"uv cannot install the packages of a Kit image:\n{done.stderr.strip()}")
    return done.stdout


def tidy_packages(target: Path) -> None:
    """Remove from an installed folder what tells how it was installed, and its programs."""
    shutil.rmtree(target / "bin", ignore_errors=True)
    for name in (".lock", ".gitignore", "CACHEDIR.TAG"):
        (target / name).unlink(missing_ok=True)
    for info in target.glob("*.dist-info"):
        for name in _STRAY:
            (info / name).unlink(missing_ok=True)
