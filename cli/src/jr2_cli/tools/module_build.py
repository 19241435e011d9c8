"""The programs that no other source has, built from their modules, with lines that say how far.

The programs of one module are built in one private cache, since they share most of what is
compiled; the cache goes with the last of them (ADR-0111).

Source: design §7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jr2.errors import StepFailed
from jr2_infra.report import Reporter

from . import cache as cache_folder
from . import catalogue, golang, lookup

_STILL_SECONDS: Final = 60.0
"""A build that says nothing for longer looks dead, and some CI services then end it."""


def check_machine(
    programs: Sequence[catalogue.Program], cache: Path, environ: Mapping[str, str]
) -> golang.Go:
    """Look for what a build needs: a Go that is new enough, and room on the disk.

    Args:
        programs: what will be built.
        cache: the folder in which it is built.
        environ: the environment that PATH is read from.

    Raises:
        StepFailed: one of them is missing; the text says what to do.
    """
    modules = [module for module, _ in golang.programs_by_module(programs)]
    go = golang.find_go(environ, golang.needed_go(modules))
    free = golang.free_bytes(cache)
    if free < golang.FREE_BYTES:
        raise StepFailed(
            f"{cache} has {free / 1e9:.1f} GB free, and the build needs "
            f"{golang.FREE_BYTES / 1e9:.0f} GB for a while — free some, or set XDG_CACHE_HOME "
            "to a folder on a disk that has them"
        )
    return go


def build_all(
    programs: Sequence[catalogue.Program],
    cache: Path,
    environ: Mapping[str, str],
    reporter: Reporter,
    clock: Callable[[], float],
) -> None:
    """Build programs into the cache, module by module.

    Args:
        programs: rows of the table.
        cache: the folder, whose lock is held.
        environ: the environment that PATH, HOME and the settings of Go are read from.
        reporter: where the lines go.
        clock: seconds that only go up.

    Raises:
        StepFailed: a program cannot be built; those before it stay.
    """
    go = check_machine(programs, cache, environ)
    groups = golang.programs_by_module(programs)
    work = cache / cache_folder.WORK
    standard = work / "standard" / "objects"
    if len(groups) > 1:
        text = f"tools: compiling the standard library of Go {go.version}"
        reporter.line(text, code="tools-building")
        reporter.progress(text)
        golang.compile_standard_library(go.path, environ, work / "standard")
    done = 0
    for module, wanted in groups:
        folder = work / module.name
        source = golang.stage_module(module, folder)
        golang.share_standard_library(standard, folder)
        env = golang.environment(environ, work=folder, module=module)
        golang.prepare(module, go.path, env, source)
        for program in wanted:
            done += 1
            voice = _Voice(
                program=program, place=f"{done}/{len(programs)}", reporter=reporter, clock=clock
            )
            made = folder / "made" / program.name
            voice.begin()
            golang.build(program, go.path, env, source, made, heard=voice.heard)
            cache_folder.place_binary(made, lookup.cached_binary(program, cache))
            voice.end()
        golang.remove_tree(folder)


@dataclass(slots=True, kw_only=True)
class _Voice:
    """Says how far the build of one program is."""

    program: catalogue.Program
    place: str
    reporter: Reporter
    clock: Callable[[], float]
    started: float = 0.0
    last: float = 0.0
    packages: int = 0

    @property
    def _label(self) -> str:
        return f"{self.program.name} v{self.program.version}"

    def begin(self) -> None:
        text = f"tools: building {self._label} ({self.place})"
        self.reporter.line(text, code="tools-building")
        self.reporter.progress(text)
        self.started = self.last = self.clock()

    def heard(self, line: str) -> None:
        """Take one line of `go build -v`: a package that it compiles, or a download."""
        if golang.is_package(line):
            self.packages += 1
        now = self.clock()
        what = f"{self.packages} packages" if self.packages else "fetching modules"
        self.reporter.progress(
            f"tools: building {self._label} ({self.place}): {what}, {now - self.started:.0f}s"
        )
        if now - self.last >= _STILL_SECONDS:
            self.last = now
            self.reporter.line(
                f"tools: still building {self._label} ({what}, {now - self.started:.0f}s)",
                code="tools-still-building",
            )

    def end(self) -> None:
        self.reporter.line(
            f"tools: {self._label} built in {self.clock() - self.started:.0f}s", code="tools-built"
        )
