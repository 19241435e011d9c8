"""A second Kit version for the tests: this checkout, copied, with the next version in its files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from jr2 import names

CHECKOUT: Final = Path(__file__).resolve().parents[2]
NOW: Final = names.KIT_VERSION
NEXT: Final = "1.0.1.dev0"
_STATE_IT: Final = (
    "cli/pyproject.toml",
    "infra/pyproject.toml",
    "infra/src/jr2_infra/facts/kit.py",
    "pyproject.toml",
    "runtime/kit/pyproject.toml",
    "runtime/kit/src/jr2/names.py",
    "runtime/machines/pyproject.toml",
    "runtime/services/pyproject.toml",
)
"""Each file that states the Kit version."""


def copy_checkout(folder: Path) -> Path:
    """Copy what git knows of the checkout, and make it the next version."""
    known = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=CHECKOUT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, known.stdout.decode().split("\0")):
        if (CHECKOUT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, folder / name)
    for name in _STATE_IT:
        file = folder / name
        text = file.read_text(encoding="utf-8")
        assert NOW in text, f"{name} does not state the Kit version"
        file.write_text(text.replace(NOW, NEXT), encoding="utf-8")
    return folder


def build_images(checkout: Path) -> None:
    """Build the Kit images of a copied checkout with the interpreter of this one."""
    sources = [str(checkout / place) for place in ("infra/src", "runtime/kit/src")]
    done = subprocess.run(
        [sys.executable, "-m", "jr2_infra.images"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sources)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def pin(instance: Path, checkout: Path, version: str) -> None:
    """Change the pins of an Instance, as a person does who upgrades it."""
    file = instance / "pyproject.toml"
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines():
        for before in (NOW, NEXT):
            line = line.replace(f"=={before}", f"=={version}")
        if "path = " in line:
            place = line.partition('path = "')[2].partition('"')[0]
            for folder in ("runtime/kit", "runtime/machines", "infra", "cli"):
                if place.endswith(f"/{folder}"):
                    line = line.replace(place, str(checkout / folder))
        lines.append(line)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
