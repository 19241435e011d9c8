"""Machine code of the modules of the Kit that make a step, by mypyc.

The sources stay what they are: a module has its `.py` file everywhere, and beside it in the image of
the Orchestrator a compiled one, which Python prefers. The types that `mypy --strict` checks are what
mypyc compiles by, so a value of another type is a `TypeError` there.

Source: ADR-0114, design §8.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from jr2 import names
from jr2.errors import StepFailed

from . import recipe
from .chroot import run_inside

MODULES: Final = (
    *("jr2.document", "jr2.frames", "jr2.host_kept", "jr2.snapshot"),
    *("jr2.kernel", "jr2.kernel.faults", "jr2.kernel.keys", "jr2.kernel.macrostep"),
    *("jr2.kernel.outbox", "jr2.kernel.plans", "jr2.kernel.running"),
)
"""What each step of a run goes through. A module with a class inside a function cannot be compiled."""

COMPILER_PATH: Final = "/opt/compiler"
"""Where the packages of the compiler lie in the root file system that compiles."""
_SOURCES: Final = "/sources"
_MADE: Final = "/made"
_GROUP: Final = "jr2"
"""The module with all the code is `<group>__mypyc`; those of `MODULES` lead to it."""

_BUILD: Final = f"""
import glob, os, subprocess, sys

# mypy finds the types of what the Kit imports on this path too.
sys.path += [{COMPILER_PATH!r}, {names.KIT_PATH!r}]
os.chdir({_SOURCES!r})
from mypyc.build import mypycify
from setuptools import setup

files = sys.argv[1:]
options = ["--strict", "--python-version", {recipe.PYTHON_VERSION!r}, "--cache-dir", "/cache"]
modules = mypycify(
    [*options, *files], opt_level="3", debug_level="0", strip_asserts=False, group_name={_GROUP!r}
)
build = ["--quiet", "build_ext", "--build-lib", {_MADE!r}]
setup(name="kernel", ext_modules=modules, script_args=build)
made = glob.glob("{_MADE}/**/*.so", recursive=True)
subprocess.run(["strip", "--strip-unneeded", *made], check=True)
"""
"""Runs in the root file system that compiles, with the files of the modules as its arguments."""

IMPORT_COMPILED: Final = f"""
import importlib
for name in {MODULES!r}:
    assert importlib.import_module(name).__file__.endswith(".so"), name
"""
"""Fails where a module of `MODULES` is not the compiled one."""


def compile_kit(root: Path, kit: Path, target: Path) -> None:
    """Compile the modules inside a root file system, and put what was made below `target`.

    Args:
        root: a throw-away root with Python, its headers, a compiler, mypyc at `COMPILER_PATH` and
            the packages that the Kit imports.
        kit: the sources of the distribution `jr2`.
        target: becomes a layer: the compiled modules at their places in the image.

    Raises:
        StepFailed: a module does not compile; what mypyc or the compiler said stands in the text.
    """
    shutil.copytree(
        kit, root / _SOURCES[1:] / "jr2", ignore=shutil.ignore_patterns("__pycache__", "docs")
    )
    (root / "tmp").mkdir(exist_ok=True)
    # Without -I, which would have the seed of hashes be another one each time.
    run_inside(root, [recipe.PYTHON, "-SB", "-c", _BUILD, *(_file(kit, each) for each in MODULES)])
    place = target / names.KIT_PATH[1:]
    shutil.copytree(root / _MADE[1:], place)
    made = len(list(place.rglob("*.so")))
    if made != len(MODULES) + 1:
        raise StepFailed(f"mypyc made {made} files of {len(MODULES)} modules of the Kit")


def _file(kit: Path, module: str) -> str:
    """Return the source of a module, below the folder of the sources."""
    path = Path(*module.split("."))
    is_package = (kit.parent / path).is_dir()
    return str(path / "__init__.py" if is_package else path.with_suffix(".py"))
