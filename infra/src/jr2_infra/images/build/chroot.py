"""Programs of the image, run inside its root file system while it is built."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from jr2.errors import StepFailed

from ... import processes
from . import recipe

_STAGE = "stage"
# Byte code must not depend on the order of sets, so the hash seed is fixed.
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}

_UNCHECKED = (1).to_bytes(4, "little")
"""The flags of byte code that is never compared with its source (PEP 552)."""


def run_inside(root: Path, argv: Sequence[str]) -> str:
    """Run a program of the image with `root` as its root folder and return its output.

    Raises:
        StepFailed: it failed; its last lines stand in the text.
    """
    done = processes.run(["chroot", root, *argv], env=_ENVIRONMENT)
    if done.returncode != 0:
        # Most programs say on standard error what failed; type checkers do on standard output.
        said = done.stderr.strip() or done.stdout.strip()
        last = "\n".join(said.splitlines()[-15:])
        raise StepFailed(f"{argv[0]} failed inside the Kit image's file system:\n{last}")
    return done.stdout


def compile_python(
    root: Path, folder: str, *, strip: str = "", python: str = recipe.PYTHON
) -> None:
    """Compile what is below `folder` with the image's own Python, never to be checked again.

    Args:
        root: the root file system.
        folder: an absolute path in it.
        strip: a prefix that the recorded file names lose.
        python: the interpreter, in the root file system.

    Raises:
        StepFailed: a file does not compile, or byte code that bears a time is left.
    """
    moved = ["-s", strip, "-p", "/"] if strip else []
    options = ["-q", "-f", *moved, "--invalidation-mode", "unchecked-hash"]
    # -B: byte code that the compiling Python wrote for itself would bear a time.
    run_inside(root, [python, "-SB", "-m", "compileall", *options, folder])
    for place in (root / folder.lstrip("/")).rglob("*.pyc"):
        with place.open("rb") as file:
            if file.read(8)[4:] != _UNCHECKED:
                raise StepFailed(f"{place.relative_to(root)} would be compiled again at each start")


def open_stage(base: Path, work: Path) -> Path:
    """Return an empty folder that becomes a layer, inside a throw-away copy of the base.

    The copy shares the base's files by hard links, so it costs no space; only the folder is
    written.

    Args:
        base: the root file system of the lowest layer, on the same file system as `work`.
        work: a folder for the copy; what is there is removed first.
    """
    shutil.rmtree(work, ignore_errors=True)
    linked = processes.run(["cp", "-al", base, work])
    if linked.returncode != 0:
        raise StepFailed(f"cannot copy {base}: {linked.stderr.strip()}")
    folder = work / _STAGE
    folder.mkdir()
    return folder


def compile_stage(folder: Path) -> None:
    """Compile the Python files of a folder that `open_stage` gave, under their names in the image."""
    compile_python(folder.parent, f"/{_STAGE}", strip=f"/{_STAGE}")
