"""Where a program is found: on PATH when its version will do, else in our cache.

Nothing is started from the cache to look at its version: the version is a folder of its path, and
a file appears there whole or not at all (`install`).

Source: design §7.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jr2_infra import processes, user_home

from . import catalogue

_PROBE_SECONDS = 20.0

Source = Literal["path", "cache"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A copy on PATH that was not taken.

    Args:
        path: where it is.
        version: what it said; `None` when it could not be read.
        reason: why it was not taken, as the end of a sentence.
    """

    path: Path
    version: str | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Where a program is, or that it is nowhere.

    Args:
        program: the row of the table.
        path: the binary; `None` when there is none.
        version: its version; `None` when there is none.
        source: which of the sources had it.
        passed: a copy on PATH that was met first and not taken.
    """

    program: catalogue.Program
    path: Path | None = None
    version: str | None = None
    source: Source | None = None
    passed: Passed | None = None


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder of our cache: `$XDG_CACHE_HOME/jr2/tools`, or `~/.cache/jr2/tools`.

    Args:
        environ: the environment; `None` reads ours.

    Raises:
        StepFailed: nobody says where the home folder is.
    """
    values = os.environ if environ is None else environ
    base = values.get("XDG_CACHE_HOME", "")
    # The specification of that variable says to ignore a relative path.
    root = Path(base) if base.startswith("/") else user_home.folder(values) / ".cache"
    return root / "jr2" / "tools"


def cached_binary(program: catalogue.Program, cache: Path) -> Path:
    """The place of a program in a cache, whether it is there or not."""
    return cache / program.name / program.version / program.name


def probe_version(program: catalogue.Program, binary: Path) -> str | None:
    """Ask a binary for its version.

    Returns:
        `None` when it does not start, takes too long, or says something else.
    """
    assert program.probe is not None
    try:
        said = processes.run([binary, *program.probe.arguments], timeout=_PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(program.probe.pattern, f"{said.stdout}\n{said.stderr}", re.MULTILINE)
    return found.group(1) if found else None


def find(program: catalogue.Program, environ: Mapping[str, str] | None = None) -> Found:
    """Look for a program on PATH and in the cache, in this order.

    Args:
        program: the row of the table.
        environ: the environment that PATH, HOME and XDG_CACHE_HOME are read from; `None` is ours.
    """
    values = os.environ if environ is None else environ
    passed: Passed | None = None
    on_path = shutil.which(program.name, path=values.get("PATH", ""))
    if on_path is not None:
        path = Path(on_path)
        if program.probe is None:
            passed = Passed(path=path, version=None, reason="cannot be asked for its version")
        else:
            version = probe_version(program, path)
            if version is None:
                passed = Passed(path=path, version=None, reason="did not tell its version")
            elif program.accepts.holds(version):
                return Found(program=program, path=path, version=version, source="path")
            else:
                passed = Passed(
                    path=path, version=version, reason=f"is not a version {program.accepts}"
                )
    binary = cached_binary(program, cache_folder(values))
    if os.access(binary, os.X_OK):
        return Found(
            program=program, path=binary, version=program.version, source="cache", passed=passed
        )
    return Found(program=program, passed=passed)


def missing_packages() -> tuple[catalogue.Package, ...]:
    """The packages of the operating system that are not there."""
    return tuple(package for package in catalogue.PACKAGES if not _is_there(package))


def system_program(name: str) -> Path | None:
    """A program of the operating system, also when PATH lacks the `sbin` folders."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *catalogue.SYSTEM_PATHS])
    found = shutil.which(name, path=path)
    return Path(found) if found else None


def _is_there(package: catalogue.Package) -> bool:
    if package.files and not any(Path(file).exists() for file in package.files):
        return False
    found = [system_program(name) for name in package.programs]
    if package.static and found and found[0] is not None:
        return is_static(found[0])
    return all(found)


def is_static(binary: Path) -> bool:
    """Tell whether a 64-bit little-endian ELF file needs no dynamic loader."""
    with binary.open("rb") as file:
        head = file.read(64)
        if head[:6] != b"\x7fELF\x02\x01":
            return False
        offset = int.from_bytes(head[32:40], "little")
        size, count = (int.from_bytes(head[at : at + 2], "little") for at in (54, 56))
        file.seek(offset)
        headers = file.read(size * count)
    # A segment of type 3, PT_INTERP, names the loader.
    return all(headers[at : at + 4] != b"\x03\x00\x00\x00" for at in range(0, size * count, size))
