"""An Instance with each type checker of PyPI, as `jr2 check` runs it.

The environment is made once with uv and kept below the home folder: `requirements/checkers.txt`
pins and hashes what is in it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jr2"
PINS = tuple(ROOT / "requirements" / name for name in ("kit.txt", "checkers.txt"))
KIT = {"jr2": "runtime/kit/src", "jr2_machines": "runtime/machines/src"}

Instance = Callable[..., Path]


@pytest.fixture(scope="session")
def environment() -> Path:
    """A virtual environment with the Kit of this checkout, its dependencies and each checker."""
    key = hashlib.sha256(f"{ROOT} {sys.version} {KIT}".encode())
    for pins in PINS:
        key.update(pins.read_bytes())
    place = CACHE / f"checkers-{key.hexdigest()[:12]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "complete").exists():
            make_environment(place)
            (place / "complete").touch()
    return place


def make_environment(place: Path) -> None:
    uv, python = Path(sys.executable).with_name("uv"), place / "bin" / "python"
    quiet = [str(uv), "--quiet"]
    run = partial(subprocess.run, check=True)
    run([*quiet, "venv", "--clear", "--python", sys.executable, str(place)])
    pins = [part for file in PINS for part in ("-r", str(file))]
    run([*quiet, "pip", "install", "--python", str(python), "--require-hashes", *pins])
    (site,) = place.glob("lib/python3.*/site-packages")
    for name, folder in KIT.items():
        (site / f"_editable_impl_{name}.pth").write_text(f"{ROOT / folder}\n")


@pytest.fixture
def instance(tmp_path: Path, environment: Path) -> Instance:
    """Make an Instance folder whose environment has each checker."""

    def make(checker: str, files: dict[str, str], settings: str = "") -> Path:
        root = tmp_path / "my-instance"
        root.mkdir()
        (root / ".venv").symlink_to(environment)
        project = f'[project]\nname = "my-instance"\nversion = "0"\nrequires-python = ">=3.11"\n\n[tool.jr2]\ntypecheck = "{checker}"\n'
        for name, text in {"pyproject.toml": f"{project}\n{settings}", **files}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        return root

    return make
