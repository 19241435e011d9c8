"""`jr2 tools install`: each program from the first of the sources that has it.

The sources, in order: PATH with its version checked, our cache, and a build from the module with
our `go.mod` and `go.sum`. What is built is written into the work folder first and then moved into
the cache, on the same file system, so a program is there whole or not at all. One lock for the
whole install: a second one waits, and then finds what the first one made. What a killed install
left behind lies in the work folder, which the next one removes.

Source: design §7.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jr2.errors import Jr2Error, StepFailed
from jr2_infra.report import Reporter

from . import catalogue, golang, lookup, packages

_LOCK = ".lock"
_WORK = ".work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """What an install needs of the world.

    Args:
        environ: the environment that PATH, HOME and the settings of Go are read from.
        reporter: where the lines go.
        clock: seconds that only go up.
    """

    environ: Mapping[str, str]
    reporter: Reporter
    clock: Callable[[], float] = time.monotonic

    def install(self, programs: Sequence[catalogue.Program]) -> list[lookup.Found]:
        """Make every one of these programs present.

        Args:
            programs: rows of the table, in its order.

        Returns:
            Where each of them is.

        Raises:
            StepFailed: a program could not be had; the text names it, what was tried, and the
                next command. What was installed before it stays.
        """
        cache = lookup.cache_folder(self.environ)
        cache.mkdir(parents=True, exist_ok=True)
        with self._locked(cache):
            missing = self._missing(programs)
            if missing:
                self._build_all(missing, cache)
        return [lookup.find(program, self.environ) for program in programs]

    def install_packages(self) -> None:
        """Install what the operating system must bring, where we may.

        Raises:
            StepFailed: something is missing and cannot be installed from here; the text holds the
                command that installs it.
        """
        packages.install(lookup.missing_packages(), self.reporter)

    def _missing(self, programs: Sequence[catalogue.Program]) -> list[lookup.Found]:
        found = [lookup.find(program, self.environ) for program in programs]
        for item in found:
            if item.path is None and item.passed is not None and item.passed.version is not None:
                self.reporter.line(
                    f"tools: {item.passed.path} {item.passed.reason} (it is {item.passed.version})",
                    code="tools-passed",
                )
        return [item for item in found if item.path is None]

    def _build_all(self, missing: Sequence[lookup.Found], cache: Path) -> None:
        work = cache / _WORK
        golang.remove_tree(work)
        try:
            groups = golang.programs_by_module([item.program for item in missing])
            go = golang.find_go(self.environ, golang.needed_go([module for module, _ in groups]))
            self._check_room(cache)
            standard = work / "standard" / "objects"
            if len(groups) > 1:
                text = f"tools: compiling the standard library of Go {go.version}"
                self.reporter.line(text, code="tools-building")
                self.reporter.progress(text)
                golang.compile_standard_library(go.path, self.environ, work / "standard")
            position = 0
            for module, programs in groups:
                self._build_module(
                    module, programs, go.path, standard, cache, position, len(missing)
                )
                position += len(programs)
        except Jr2Error as error:
            raise StepFailed(_failure(error, missing, cache, self.environ)) from error
        finally:
            self.reporter.progress(None)
            golang.remove_tree(work)

    def _build_module(
        self,
        module: catalogue.Module,
        programs: Sequence[catalogue.Program],
        go: Path,
        standard: Path,
        cache: Path,
        position: int,
        total: int,
    ) -> None:
        work = cache / _WORK / module.name
        source = golang.stage_module(module, work)
        golang.share_standard_library(standard, work)
        env = golang.environment(self.environ, work=work, module=module)
        for program in programs:
            position += 1
            label = f"{program.name} v{program.version}"
            self.reporter.line(
                f"tools: building {label} ({position}/{total})", code="tools-building"
            )
            self.reporter.progress(f"tools: building {label} ({position}/{total})")
            started = self.clock()
            made = work / "made" / program.name
            golang.prepare(module, go, env, source)
            golang.build(program, go, env, source, made)
            place_binary(made, lookup.cached_binary(program, cache))
            self.reporter.line(
                f"tools: {label} built in {self.clock() - started:.0f}s", code="tools-built"
            )
        golang.remove_tree(work)

    def _check_room(self, cache: Path) -> None:
        free = golang.free_bytes(cache)
        if free < golang.FREE_BYTES:
            raise StepFailed(
                f"{cache} has {free / 1e9:.1f} GB free, and the build needs "
                f"{golang.FREE_BYTES / 1e9:.0f} GB for a while — free some, or set XDG_CACHE_HOME "
                "to a folder on a disk that has them"
            )

    @contextmanager
    def _locked(self, cache: Path) -> Iterator[None]:
        descriptor = os.open(cache / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.reporter.line("tools: another install is at work, waiting", code="tools-wait")
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def place_binary(made: Path, target: Path) -> None:
    """Move a finished binary to its place in the cache, whole or not at all.

    Args:
        made: the binary, on the same file system.
        target: its place; an older file there is replaced.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    made.chmod(0o755)
    with made.open("rb") as file:
        os.fsync(file.fileno())
    os.replace(made, target)


def _failure(
    error: Jr2Error,
    missing: Sequence[lookup.Found],
    cache: Path,
    environ: Mapping[str, str],
) -> str:
    """Say what could not be had, what was tried in order, and what to type."""
    left = [item for item in missing if not lookup.cached_binary(item.program, cache).exists()]
    names = " ".join(item.program.name for item in left)
    lines = [error.message, f"not installed: {names}", "tried, in order:"]
    on_path = [item.passed for item in left if item.passed is not None]
    lines += [f"  PATH: {item.path} {item.reason}" for item in on_path] or ["  PATH: none of them"]
    lines.append(f"  cache: not in {cache}")
    lines.append("  module build: failed as said above")
    lines.append("then re-run `jr2 tools install`; what was built stays")
    return "\n".join(lines)
