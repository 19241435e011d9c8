"""Publish an Assembly: receive, check, load, and make it current by one commit.

The Assembly that was current stays current until that commit, and a refused publish leaves no file
behind. A publish carries the stamp of the converge Lease, and whoever held the Lease before another
one published is refused. Publishes are taken one at a time; receiving is not, so a slow sender
blocks nobody. A folder that cannot be removed changes no answer: it is tried again.

Codes: 201 current now, 200 already current, 400 the content is not that of the hash, 409 another
Kit version or an older Lease, 413 too large, 422 it does not load (with the problems), 503 the
worker is away, 507 no room.

Source: design §5.5, spec/runtime.md §1.13.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from jr2 import host_wire, names
from jr2.tree_hash import hash_folder
from jr2.wire import AssemblyManifest, LeaseStamp, Published

from ..clock import Clock
from ..engine import Engine, Registry
from ..engine.registry import workflows_to_json
from ..host import Processes
from ..host.process import Problem
from ..store import Answer, Assembly, Once, Run, Stale, Store, answers
from ..store import assemblies as rows
from .archive import SPARE_BYTES, ArchiveRefused, Limits, survey, unpack
from .folders import Folders

WORKER_DEADLINE: Final = 90.0
"""Seconds in which the worker must have loaded it, or said why not."""
LARGEST_MANIFEST: Final = 256 * 2**10
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
"""Seconds between two tries to remove an older Assembly."""

log = logging.getLogger("jr2.publish")


class PublishError(Exception):
    """The Assembly was refused; the one that was current still is.

    Args:
        code: the HTTP status.
        message: one clause, without a full stop.
        problems: one text for each problem of the Assembly itself.
    """

    def __init__(self, code: int, message: str, problems: list[str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.problems = problems or []


class Publisher:
    """Takes publishes, and removes what no run holds any more."""

    def __init__(
        self,
        *,
        store: Store,
        engine: Engine,
        processes: Processes,
        registry: Registry,
        folders: Folders,
        clock: Clock,
        largest_archive: int = names.MAX_ASSEMBLY_ARCHIVE,
        limits: Limits | None = None,
    ) -> None:
        self._store = store
        self._engine = engine
        self._processes = processes
        self._registry = registry
        self._folders = folders
        self._clock = clock
        self._largest = largest_archive
        self._limits = limits or Limits()
        self._one = asyncio.Lock()
        self._leaving: set[str] = set()
        """Hashes that no row names any more and whose folder is still there."""

    async def publish(
        self,
        hash_: str,
        content: AsyncIterator[bytes],
        length: int | None,
        stamp: LeaseStamp,
        once: Once | None = None,
    ) -> Answer:
        """Take one publish; return the answer to it.

        Args:
            hash_: 64 hex digits.
            content: the archive, not read when the Assembly is held already.
            length: the archive's length where the sender said it.
            stamp: the Lease of the sender.
            once: the key of the request.

        Raises:
            Repeated, OtherRequest: the key was used before; nothing was published.
            PublishError: with the code and the problems.
            StoreError: it could not be recorded.
        """
        await self._check_lease(stamp)
        if hash_ in {each.hash for each in await self._store.read(rows.held)}:
            async with self._one:
                return await self._make_current(hash_, None, stamp, once)
        try:
            place = await asyncio.to_thread(self._folders.new_incoming)
        except OSError as failed:
            raise _not_taken(failed) from failed
        try:
            archive = place / "archive"
            await self._receive(content, length, archive)
            tree = await asyncio.to_thread(self._unpack, archive, place / "tree", hash_)
            async with self._one:
                return await self._make_current(hash_, tree, stamp, once)
        finally:
            await asyncio.to_thread(self._folders.discard, place)

    async def _check_lease(self, stamp: LeaseStamp) -> None:
        try:
            await self._store.read(lambda db: rows.check_lease(db, stamp))
        except Stale as stale:
            raise PublishError(409, str(stale)) from stale

    # --- receive and check ------------------------------------------------------------------------
    async def _receive(
        self, content: AsyncIterator[bytes], length: int | None, archive: Path
    ) -> None:
        too_large = PublishError(413, f"the archive is larger than {self._largest} bytes")
        if length is not None and length > self._largest:
            raise too_large
        free = self._folders.free() - self._limits.spare
        if (length or 0) > free:
            raise PublishError(507, "the state volume has no room for the archive")
        received = 0
        with archive.open("wb", buffering=0) as file:
            async for chunk in content:
                received += len(chunk)
                if received > self._largest:
                    raise too_large
                if received > free:
                    raise PublishError(507, "the state volume has no room for the archive")
                try:
                    await asyncio.to_thread(_write, file, chunk)
                except OSError as failed:
                    # Several are received at once, so there may be less room than there was.
                    raise _not_taken(failed) from failed

    def _unpack(self, archive: Path, tree: Path, hash_: str) -> Path:
        """Unpack and check what needs no user code; runs in a thread."""
        try:
            members = survey(archive, self._limits, self._folders.free())
            unpack(archive, members, tree)
        except ArchiveRefused as refused:
            raise PublishError(refused.code, str(refused)) from refused
        except OSError as failed:
            raise _not_taken(failed) from failed
        actual = hash_folder(tree, salt="assembly")
        if actual != hash_:
            raise PublishError(400, f"the content has the hash {actual[:12]}, not {hash_[:12]}")
        self._check_manifest(tree)
        return tree

    def _check_manifest(self, tree: Path) -> AssemblyManifest:
        file = tree / names.ASSEMBLY_MANIFEST
        if file.stat().st_size > LARGEST_MANIFEST:
            raise PublishError(400, f"{names.ASSEMBLY_MANIFEST} is too large")
        try:
            manifest = AssemblyManifest.model_validate_json(file.read_bytes())
        except ValidationError as bad:
            fields = ", ".join(".".join(map(str, each["loc"])) or "." for each in bad.errors())
            raise PublishError(
                400, f"{names.ASSEMBLY_MANIFEST} is not that of an Assembly: {fields}"
            ) from bad
        if manifest.kit_version != self._registry.kit_version:
            raise self._other_kit(manifest.kit_version)
        return manifest

    def _other_kit(self, version: str) -> PublishError:
        return PublishError(
            409,
            f"it is for Kit version {version} and this Orchestrator is "
            f"{self._registry.kit_version} (ADR-0056)",
        )

    # --- load and commit --------------------------------------------------------------------------
    async def _make_current(
        self, hash_: str, tree: Path | None, stamp: LeaseStamp, once: Once | None
    ) -> Answer:
        """Load the Assembly and make it current; with a tree, put that at its place first."""
        held = {each.hash: each for each in await self._store.read(rows.held)}
        before = self._registry.hash
        if hash_ == before and hash_ in held:
            workflows = json.loads(held[hash_].workflows)
            answer = _answer(200, hash_, [each["name"] for each in workflows])
            await self._record_lease(stamp, once, answer)
            return answer
        kept = False
        try:
            if hash_ not in held:
                if tree is None:
                    raise PublishError(409, "the Assembly was released just now; publish it again")
                self._leaving.discard(hash_)
                try:
                    await asyncio.to_thread(self._folders.place, tree, hash_)
                except OSError as failed:
                    raise _not_taken(failed) from failed
            manifest = await asyncio.to_thread(self._check_manifest, self._folders.of(hash_))
            loaded = await self._load(hash_, manifest)
            assembly = Assembly(
                hash=hash_,
                kit_version=loaded.kit_version,
                instance=manifest.instance,
                workflows=workflows_to_json(loaded.workflows),
                current=True,
            )
            # The commit and what follows it are one piece: a sender that goes away in the middle
            # must not make the clean-up below believe that nothing was committed.
            answer = _answer(201, hash_, sorted(each.name for each in loaded.workflows))
            finishing = asyncio.ensure_future(self._commit(assembly, stamp, once, answer))
            try:
                await asyncio.shield(finishing)
            finally:
                kept = finishing.done() is False or finishing.exception() is None
        finally:
            if not kept and hash_ not in held:
                await self._remove([hash_])
        log.info(
            "an Assembly is current",
            extra={"assembly": hash_[:12], "over": before and before[:12]},
        )
        return answer

    async def _load(self, hash_: str, manifest: AssemblyManifest) -> host_wire.Loaded:
        try:
            async with asyncio.timeout(WORKER_DEADLINE):
                loaded = await self._processes.for_steps(hash_).first_load()
        except TimeoutError as late:
            raise PublishError(503, "the worker is away") from late
        if isinstance(loaded, Problem):
            raise PublishError(422, "it does not load", [loaded.text])
        if loaded.problems:
            raise PublishError(422, "it does not pass the Orchestrator's checks", loaded.problems)
        if loaded.kit_version != self._registry.kit_version:
            raise self._other_kit(loaded.kit_version)
        found = sorted(each.name for each in loaded.workflows)
        if found != sorted(manifest.workflows):
            raise PublishError(
                422,
                "it does not hold the Workflows that it names",
                [f"it names {', '.join(manifest.workflows)} and holds {', '.join(found)}"],
            )
        return loaded

    async def _record_lease(self, stamp: LeaseStamp, once: Once | None, answer: Answer) -> None:
        now = self._clock.now()

        def job(db: sqlite3.Connection) -> None:
            rows.record_lease(db, stamp)
            answers.keep(db, once, answer, now)

        try:
            await self._store.write(job)
        except Stale as stale:
            raise PublishError(409, str(stale)) from stale

    async def _commit(
        self, assembly: Assembly, stamp: LeaseStamp, once: Once | None, answer: Answer
    ) -> None:
        now = self._clock.now()

        def job(db: sqlite3.Connection) -> tuple[list[Run], list[str]]:
            answers.keep(db, once, answer, now)
            rows.record_lease(db, stamp)
            rows.make_current(db, assembly, now)
            drifted = rows.drift_others(db, self._registry.kit_version, now)
            return drifted, rows.release(db)

        try:
            drifted, released = await self._store.write(job)
        except Stale as stale:
            raise PublishError(409, str(stale)) from stale
        self._registry.take(assembly)
        for run in drifted:
            self._engine.has_settled(run)
        self._engine.published()
        await self._remove(released)

    # --- release ----------------------------------------------------------------------------------
    async def watch_releases(self) -> None:
        """Remove each older Assembly when its last live run has settled; until cancelled.

        What the store or the volume did not take is logged, and tried again after a pause.
        """
        pause = FIRST_PAUSE
        while True:
            await self._engine.released.wait()
            self._engine.released.clear()
            try:
                async with self._one:
                    await self._remove(await self._store.write(rows.release, frees_room=True))
            except Exception as failed:
                # The root of this loop: were it to end, older Assemblies would stay for ever.
                log.warning(
                    "the older Assemblies could not be looked for",
                    extra={"reason": f"{type(failed).__name__}: {failed}"},
                )
                self._engine.released.set()
            if self._engine.released.is_set():
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                pause = FIRST_PAUSE

    async def _remove(self, released: list[str]) -> None:
        """Remove what no row names; what the volume keeps is left to `watch_releases`."""
        for hash_ in released:
            self._engine.assembly_gone(hash_)
            self._leaving.add(hash_)
        for hash_ in sorted(self._leaving):
            if hash_ not in self._leaving:
                continue  # it was published again meanwhile
            try:
                await asyncio.to_thread(self._folders.remove, hash_)
            except OSError as failed:
                log.warning(
                    "the folder of an Assembly was not removed",
                    extra={"assembly": hash_[:12], "reason": str(failed)},
                )
                self._engine.released.set()
                continue
            self._leaving.discard(hash_)
            log.info("an Assembly is gone", extra={"assembly": hash_[:12]})


def _write(file: io.FileIO, chunk: bytes) -> None:
    """Write all of a chunk; an unbuffered file may take a part of it at a time."""
    left = memoryview(chunk)
    while left:
        left = left[file.write(left) :]


def _not_taken(failed: OSError) -> PublishError:
    return PublishError(507, f"the state volume did not take it: {failed.strerror}")


def _answer(code: int, hash_: str, workflows: list[str]) -> Answer:
    published = Published(hash=hash_, workflows=workflows)
    return Answer(code=code, body=published.model_dump_json(by_alias=True))


__all__ = ["SPARE_BYTES", "PublishError", "Publisher"]
