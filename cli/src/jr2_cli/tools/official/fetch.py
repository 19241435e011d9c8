"""Programs from official releases into the cache: one download for each file, checked, unpacked.

A release that cannot be had is no error: the reason is kept, and the next source is asked. A host
that does not answer is asked once.

Source: design §7, ADR-0111.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from jr2.errors import StepFailed
from jr2_infra.report import Reporter

from .. import cache as cache_folder
from .. import catalogue, lookup
from . import download, table, unpack


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What the official release has of a program, or why nothing is asked of it."""

    program: catalogue.Program
    asset: table.Asset | table.Skipped


def offers(
    programs: Sequence[catalogue.Program], sums: table.Sums, where: table.Platform | None = None
) -> list[Offer]:
    """Say for each program what could be fetched, or why nothing.

    Args:
        programs: rows of the table.
        sums: the committed sums.
        where: the platform; `None` is this machine's.
    """
    here = table.this_platform() if where is None else where
    return [
        Offer(program=row, asset=table.choose(row.release, row.version, here, sums))
        for row in programs
    ]


def fetch_all(
    offered: Sequence[Offer], cache: Path, reporter: Reporter, clock: Callable[[], float]
) -> dict[str, str]:
    """Fetch what can be fetched, and put it into the cache.

    Args:
        offered: what `offers` said.
        cache: the folder, whose lock is held.
        reporter: where the lines go.
        clock: seconds that only go up.

    Returns:
        Why a program was not fetched, by its name; what is not in it is in the cache.
    """
    files = _by_file(offered)
    if not files:
        return {}
    with download.new_client() as client:
        source = _Source(cache=cache, client=client, reporter=reporter, clock=clock)
        for file, wanted in files.items():
            source.fetch(file, wanted)
    folder = cache / cache_folder.DOWNLOADS
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    return source.failed


def _by_file(offered: Sequence[Offer]) -> dict[tuple[str, str], list[Offer]]:
    """Group what lies in one file, by its address and sum."""
    files: dict[tuple[str, str], list[Offer]] = {}
    for offer in offered:
        if isinstance(offer.asset, table.Asset):
            files.setdefault((offer.asset.address, offer.asset.sha256), []).append(offer)
    return files


@dataclass(slots=True, kw_only=True)
class _Source:
    cache: Path
    client: httpx2.Client
    reporter: Reporter
    clock: Callable[[], float]
    failed: dict[str, str] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    """Hosts that do not answer, with what is said of each."""

    def fetch(self, file: tuple[str, str], wanted: Sequence[Offer]) -> None:
        """Fetch one file and take the wanted programs out of it."""
        address, sha256 = file
        host = urlsplit(address).netloc
        names = ", ".join(offer.program.name for offer in wanted)
        started = self.clock()
        try:
            if host in self.silent:
                raise StepFailed(self.silent[host])
            whole = self._download(address, sha256, names)
            for offer in wanted:
                self._place(offer, whole)
                self.reporter.line(
                    f"tools: {offer.program.name} v{offer.program.version} from its official "
                    f"release in {self.clock() - started:.0f}s",
                    code="tools-downloaded",
                )
            whole.unlink(missing_ok=True)
        except (StepFailed, OSError) as error:
            if isinstance(error, download.Unreachable):
                self.silent[host] = str(error)
            for offer in wanted:
                if not lookup.cached_binary(offer.program, self.cache).exists():
                    self.failed[offer.program.name] = str(error)
            self.reporter.warning(
                f"tools: {names} not from the official release: {error}",
                code="tools-release-failed",
            )

    def _download(self, address: str, sha256: str, names: str) -> Path:
        self.reporter.line(f"tools: downloading {names} from {address}", code="tools-downloading")

        def progress(done: int, total: int | None) -> None:
            of = "" if total is None else f" of {total / 1e6:.0f}"
            self.reporter.progress(f"tools: downloading {names}: {done / 1e6:.0f}{of} MB")

        try:
            return download.download(
                address,
                sha256,
                self.cache / cache_folder.DOWNLOADS,
                client=self.client,
                progress=progress,
            )
        finally:
            self.reporter.progress(None)

    def _place(self, offer: Offer, whole: Path) -> None:
        assert isinstance(offer.asset, table.Asset)
        made = self.cache / cache_folder.WORK / "unpacked"
        made.mkdir(parents=True, exist_ok=True)
        binary = made / offer.program.name
        if offer.asset.member is None:
            whole.replace(binary)
        else:
            try:
                unpack.extract_member(whole, offer.asset.member, binary)
            except StepFailed:
                # Its sum is right, so no download makes it better.
                whole.unlink(missing_ok=True)
                raise
        cache_folder.place_binary(binary, lookup.cached_binary(offer.program, self.cache))
