"""Publish an Assembly: say what is missing, link, check, load, and make it current by one commit.

The Assembly that was current stays current until that commit, and a refused publish leaves no file
behind but blobs, which a repeat needs not send again. A publish carries the stamp of the converge
Lease, and whoever held the Lease before another one published is refused. Publishes are taken one
at a time; receiving is not, so a slow sender blocks nobody. A folder that cannot be removed changes
no answer: it is tried again.

Codes: 201 current now, 200 already current, 400 the content is not that of the hash, 409 another
Kit version or an older Lease, 412 blobs or the base are not held, 413 too large, 422 it does not
load (with the problems), 503 the worker is away, 507 no room.

Source: design §5.5, spec/runtime.md §1.13, ADR-0118.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from jr2 import host_wire, names
from jr2.tree_hash import hash_folder
from jr2.wire import AssemblyFile, AssemblyListing, AssemblyManifest, LeaseStamp, Published

from ..clock import Clock
from ..engine import Engine, Registry
from ..engine.registry import workflows_to_json
from ..host import Processes
from ..host.process import Problem
from ..store import Answer, Assembly, Once, Run, Stale, Store, answers
from ..store import assemblies as rows
from . import listing as listings
from .blobs import Blobs, NotHeld
from .folders import Folders
from .listing import Limits
from .receiving import MOST, Encoding, Receiver, in_time
from .refused import PublishError, not_taken

WORKER_DEADLINE: Final = 90.0
"""Seconds in which the worker must have loaded it, or said why not."""
LISTS_AT_ONCE: Final = 2
"""Lists that are read at one time: one of 20 000 files takes tens of MiB for a moment."""
LARGEST_MANIFEST: Final = 256 * 2**10
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
"""Seconds between two tries to remove an older Assembly."""

log = logging.getLogger("jr2.publish")


class _Made(NamedTuple):
    """A tree that was built, and the files that it is made of."""

    tree: Path
    files: list[AssemblyFile]


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
        blobs: Blobs,
        clock: Clock,
        limits: Limits | None = None,
    ) -> None:
        self._store = store
        self._engine = engine
        self._processes = processes
        self._registry = registry
        self._folders = folders
        self._blobs = blobs
        self._clock = clock
        self._limits = limits or Limits()
        self._one = asyncio.Lock()
        self._receiving = 0
        self._reading = asyncio.Semaphore(LISTS_AT_ONCE)
        self._leaving: set[str] = set()
        """Hashes that no row names any more and whose folder is still there."""

    async def read(self, body: bytes, encoding: Encoding) -> AssemblyListing:
        """Return the list of files that a body is.

        Raises:
            PublishError: 400 or 413.
        """
        async with self._reading:
            return await asyncio.to_thread(listings.read, body, is_packed=bool(encoding))

    async def files(self, hash_: str) -> bytes:
        """Return the files of a held Assembly, as JSON.

        Raises:
            PublishError: 404, it is not held, or nobody wrote its files down.
        """
        text = None
        if await self._is_held(hash_):
            text = await asyncio.to_thread(self._folders.listing_text, hash_)
        if text is None:
            raise PublishError(404, f"no list of Assembly {hash_[: names.SHORT_HASH]} is held")
        return text

    async def missing(self, hash_: str, listing: AssemblyListing, stamp: LeaseStamp) -> list[str]:
        """Return which blobs of an Assembly are not held; refuse here what could not be published.

        Args:
            hash_: 64 hex digits.
            listing: its files.
            stamp: the Lease of the sender.

        Raises:
            PublishError: with the code.
        """
        await self.check_lease(stamp)
        if await self._is_held(hash_):
            return []
        return await asyncio.to_thread(self._missing, listing)

    def _missing(self, listing: AssemblyListing) -> list[str]:
        files = self._resolved(listing)
        needed = listings.blobs(files)
        now = self._clock.now()
        missing = self._blobs.missing(needed, now)
        size = sum(needed[digest] for digest in missing)
        if self._is_short(size, len(files)) is not None:
            # What was left by others goes first; whoever still sends it is told what is missing.
            self._blobs.sweep(now, unused_for_ms=0, spared=needed)
            short = self._is_short(size, len(files))
            if short is not None:
                raise short
        return missing

    def _is_short(self, size: int, files: int) -> PublishError | None:
        """Return the refusal of what the volume has no room for."""
        free = self._folders.free() - self._limits.spare
        if size > free:
            return PublishError(
                507,
                f"the state volume has no room for the Assembly: {size} bytes of it are missing, "
                f"and {max(free, 0)} are free",
            )
        possible = self._folders.free_files()
        if possible is not None and 2 * files + listings.SPARE_FILES > possible:
            return PublishError(507, "the state volume has no room for so many files")
        return None

    def _resolved(self, listing: AssemblyListing) -> list[AssemblyFile]:
        base = [] if listing.base is None else self._folders.listing(listing.base)
        if base is None:
            raise PublishError(412, "the Assembly that the list starts from is not held")
        files = listings.resolve(listing, base)
        listings.check(files, self._limits)
        return files

    async def receive(
        self,
        digest: str | None,
        content: AsyncIterator[bytes],
        length: int | None,
        encoding: Encoding = "",
    ) -> int:
        """Take one blob, or a bundle of several; return how many there were.

        Args:
            digest: of the one blob; `None` for a bundle.
            content: the body.
            length: the body's length where the sender said it.
            encoding: how the body is packed.

        Raises:
            PublishError: with the code. What came whole before a bundle was cut is kept.
        """
        largest = min(
            names.MAX_BUNDLE if digest is None else names.MAX_ASSEMBLY_BYTES, self._limits.unpacked
        )
        room = self._folders.free() - self._limits.spare
        if not encoding and length is not None and length > largest:
            raise PublishError(413, f"the body is larger than {largest} bytes")
        if (length or 0) > room:
            raise PublishError(507, "the state volume has no room for it")
        if self._receiving >= MOST:
            raise PublishError(503, "too many blobs are received at once; send it again later")
        self._receiving += 1
        try:
            place = await asyncio.to_thread(self._folders.new_incoming)
            try:
                receiver = Receiver(
                    place, digest=digest, encoding=encoding, room=room, largest=largest
                )
                try:
                    async for piece in in_time(content):
                        await asyncio.to_thread(receiver.feed, piece)
                    await asyncio.to_thread(receiver.end)
                finally:
                    receiver.close()
                    await asyncio.to_thread(self._keep, receiver)
            finally:
                await asyncio.to_thread(self._folders.discard, place)
        except OSError as failed:
            raise not_taken(failed) from failed
        finally:
            self._receiving -= 1
        return len(receiver.whole)

    def _keep(self, receiver: Receiver) -> None:
        self._blobs.keep(receiver.sync(), self._clock.now())

    def sweep(self) -> int:
        """Remove the blobs that no Assembly has had for an hour; return how many bytes."""
        return self._blobs.sweep(self._clock.now())

    async def publish(
        self,
        hash_: str,
        listing: AssemblyListing,
        stamp: LeaseStamp,
        once: Once | None = None,
    ) -> Answer:
        """Make an Assembly current whose blobs are held; return the answer to it.

        Args:
            hash_: 64 hex digits.
            listing: its files, not looked at when the Assembly is held already.
            stamp: the Lease of the sender.
            once: the key of the request.

        Raises:
            Repeated, OtherRequest: the key was used before; nothing was published.
            PublishError: with the code and the problems.
            StoreError: it could not be recorded.
        """
        await self.check_lease(stamp)
        if await self._is_held(hash_):
            async with self._one:
                return await self._make_current(hash_, None, stamp, once)
        try:
            place = await asyncio.to_thread(self._folders.new_incoming)
        except OSError as failed:
            raise not_taken(failed) from failed
        try:
            made = await asyncio.to_thread(self._build, listing, place / "tree", hash_)
            async with self._one:
                return await self._make_current(hash_, made, stamp, once)
        finally:
            await asyncio.to_thread(self._folders.discard, place)

    async def _is_held(self, hash_: str) -> bool:
        return hash_ in {each.hash for each in await self._store.read(rows.held)}

    async def check_lease(self, stamp: LeaseStamp) -> None:
        """Refuse whoever has lost the Lease.

        Raises:
            PublishError: 409, another one has published since.
        """
        try:
            await self._store.read(lambda db: rows.check_lease(db, stamp))
        except Stale as stale:
            raise PublishError(409, str(stale)) from stale

    # --- build and check --------------------------------------------------------------------------
    def _build(self, listing: AssemblyListing, tree: Path, hash_: str) -> _Made:
        """Link the tree and check what needs no user code; runs in a thread."""
        files = self._resolved(listing)
        try:
            self._blobs.build(files, tree)
        except NotHeld as absent:
            raise PublishError(412, f"{absent}; ask what is missing") from absent
        except OSError as failed:
            raise not_taken(failed) from failed
        actual = hash_folder(tree, salt="assembly")
        if actual != hash_:
            raise PublishError(400, f"the content has the hash {actual[:12]}, not {hash_[:12]}")
        self._check_manifest(tree)
        return _Made(tree, files)

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
        self, hash_: str, made: _Made | None, stamp: LeaseStamp, once: Once | None
    ) -> Answer:
        """Load the Assembly and make it current; one that was made is put at its place first."""
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
                if made is None:
                    raise PublishError(412, "it was released just now; ask what is missing")
                self._leaving.discard(hash_)
                try:
                    await asyncio.to_thread(self._folders.place, made.tree, made.files, hash_)
                except OSError as failed:
                    raise not_taken(failed) from failed
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
        if released:
            try:
                await asyncio.to_thread(self.sweep)
            except OSError as failed:
                log.warning("unused blobs were not removed", extra={"reason": str(failed)})


def _answer(code: int, hash_: str, workflows: list[str]) -> Answer:
    published = Published(hash=hash_, workflows=workflows)
    return Answer(code=code, body=published.model_dump_json(by_alias=True))


__all__ = ["PublishError", "Publisher"]
