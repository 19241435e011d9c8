"""`jr2 tools install`: each program from the first of the sources that has it.

The sources, in order: PATH with its version checked, our cache, the official release where a sum of
it is committed, and a build from the module with our `go.mod` and `go.sum`. What is fetched or
built is written into a work folder first and then moved into the cache, on the same file system,
so a program is there whole or not at all. One lock for the whole install: a second one waits, and
then finds what the first one made.

Whatever must be built for certain is looked at first: without a Go that is new enough, or without
room on the disk, nothing is fetched.

Source: design §7, ADR-0111.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jr2.errors import Jr2Error, StepFailed
from jr2_infra.report import Reporter

from . import cache as cache_folder
from . import catalogue, lookup, module_build, packages
from .official import fetch, table


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """What an install needs of the world.

    Args:
        environ: the environment that PATH, HOME and the settings of Go are read from.
        reporter: where the lines go.
        clock: seconds that only go up.
        sums: the sums of the official releases.
    """

    environ: Mapping[str, str]
    reporter: Reporter
    clock: Callable[[], float] = time.monotonic
    sums: table.Sums = field(default_factory=table.committed_sums)

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
        with cache_folder.locked(cache, self._waiting):
            missing = self._missing(programs)
            if missing:
                self._make(missing, cache)
        return [lookup.find(program, self.environ) for program in programs]

    def install_packages(self) -> None:
        """Install what the operating system must bring, where we may.

        Raises:
            StepFailed: something is missing and cannot be installed from here; the text holds the
                command that installs it.
        """
        packages.install(lookup.missing_packages(), self.reporter)

    def _waiting(self, process: int | None) -> None:
        who = "" if process is None else f" (process {process})"
        self.reporter.line(f"tools: another install is at work{who}, waiting", code="tools-wait")

    def _missing(self, programs: Sequence[catalogue.Program]) -> list[lookup.Found]:
        found = [lookup.find(program, self.environ) for program in programs]
        for item in found:
            if item.path is None and item.passed is not None and item.passed.version is not None:
                self.reporter.line(
                    f"tools: {item.passed.path} {item.passed.reason} (it is {item.passed.version})",
                    code="tools-passed",
                )
        return [item for item in found if item.path is None]

    def _make(self, missing: Sequence[lookup.Found], cache: Path) -> None:
        # Whoever holds the lock finds in the work folder only what an interrupted install left.
        cache_folder.clear(cache, cache_folder.WORK)
        offered = fetch.offers([item.program for item in missing], self.sums)
        passed = {
            offer.program.name: offer.asset.reason
            for offer in offered
            if isinstance(offer.asset, table.Skipped)
        }
        try:
            certain = [offer.program for offer in offered if offer.program.name in passed]
            if certain:
                module_build.check_machine(certain, cache, self.environ)
            passed |= fetch.fetch_all(offered, cache, self.reporter, self.clock)
            left = [item.program for item in missing if item.program.name in passed]
            if left:
                module_build.build_all(left, cache, self.environ, self.reporter, self.clock)
        except Jr2Error as error:
            raise StepFailed(_failure(error, missing, passed, cache)) from error
        finally:
            self.reporter.progress(None)
            cache_folder.clear(cache, cache_folder.WORK)


def _failure(
    error: Jr2Error,
    missing: Sequence[lookup.Found],
    passed: Mapping[str, str],
    cache: Path,
) -> str:
    """Say what could not be had, what was tried in order, and what to type.

    Args:
        error: what failed last.
        missing: what was neither on PATH nor in the cache when the install began.
        passed: why the official release of a program was not taken.
        cache: the folder.
    """
    left = [item for item in missing if not lookup.cached_binary(item.program, cache).exists()]
    names = " ".join(item.program.name for item in left)
    lines = [error.message, f"not installed: {names}", "tried, in order:"]
    on_path = [item.passed for item in left if item.passed is not None]
    lines += [f"  PATH: {item.path} {item.reason}" for item in on_path] or ["  PATH: none of them"]
    lines.append(f"  cache: not in {cache}")
    reasons: dict[str, list[str]] = {}
    for item in left:
        reason = passed.get(item.program.name, "not asked yet")
        reasons.setdefault(reason, []).append(item.program.name)
    for reason, programs in reasons.items():
        whose = "" if len(reasons) == 1 else f" ({', '.join(programs)})"
        lines.append(f"  official release: {reason}{whose}")
    lines.append("  module build: failed as said above")
    command = "jr2 tools install" + (f" {names}" if len(left) < 4 else "")
    lines.append(f"then re-run `{command}`; what was installed stays")
    return "\n".join(lines)
