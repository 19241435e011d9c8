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
setup(name="kernel", ext_modules=modules, script_args=["--quiet", "build_ext", "--inplace"])
made = glob.glob("**/*.so", recursive=True)
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
    sources = root / _SOURCES[1:]
    shutil.copytree(kit, sources / "jr2", ignore=shutil.ignore_patterns("__pycache__", "docs"))
    (root / "tmp").mkdir(exist_ok=True)
    # Without -I, which would have the seed of hashes be another one each time.
    run_inside(root, [recipe.PYTHON, "-SB", "-c", _BUILD, *map(_file, MODULES)])
    made = sorted(place.relative_to(sources) for place in sources.rglob("*.so"))
    made = [place for place in made if place.parts[0] != "build"]
    if len(made) != len(MODULES) + 1:
        raise StepFailed(f"mypyc made {len(made)} files of {len(MODULES)} modules of the Kit")
    for place in made:
        into = target / names.KIT_PATH[1:] / place
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(sources / place, into)
        into.chmod(0o755)


def _file(module: str) -> str:
    """Return the source of a module, below the folder of the sources."""
    path = module.replace(".", "/")
    return f"{path}/__init__.py" if module == "jr2.kernel" else f"{path}.py"
