"""Run statements: all writes in one thread with group commit, all reads in another.

The writer takes everything that waits, runs it piece by piece, and commits it together with one sync
of the disk. A piece that raises takes back its own changes only: when one does, all of them are run
again, each under a savepoint of its own. No
caller is answered before the commit, and when the commit fails, every piece of it fails. When the
disk is full, the ballast goes, and what frees room is tried once more.

A write of which its caller says that nothing else goes on is committed where it is asked for: the way
to the thread and back wakes two that sleep, which on some machines takes longer than the sync. That
holds up the loop for the length of a commit, so only while commits are short (ADR-0161).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from .ballast import Ballast
from .schema import migrate

T = TypeVar("T")
LARGEST_BATCH = 512
SHORT: Final = 0.002
"""The usual `short` of a store, in seconds."""
_WEIGHT: Final = 0.2
"""Of the newest commit in that experience: after a long one it takes a dozen short ones."""


class StoreError(Exception):
    """The transaction was not committed: nothing of it is in the store."""


@dataclass(slots=True, eq=False)
class _Job:
    """One piece of a transaction, and who waits for it."""

    loop: asyncio.AbstractEventLoop
    run: Callable[[sqlite3.Connection], Any]
    frees_room: bool
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open the database as every thread here opens it."""
    mode = "ro" if read_only else "rwc"
    connection = sqlite3.connect(
        f"file:{path}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA busy_timeout = 5000")
    if not read_only:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA journal_size_limit = 67108864")
    return connection


class Store:
    """The database of one Instance; exactly one process has it open.

    Args:
        path: the file.
        ballast: what goes when the disk is full; `None` has a full disk refuse everything.
        short: seconds that commits take by experience, up to which one may hold up the loop.

    Raises:
        NewerDatabase: a later version of jr2 wrote it.
        StoreError: it is damaged, or it cannot be written.
    """

    def __init__(self, path: Path, ballast: Ballast | None = None, *, short: float = SHORT) -> None:
        self._ballast = ballast
        try:
            self._connection = connect(path)
            migrate(self._connection)
            self._reading = connect(path, read_only=True)
        except sqlite3.Error as failed:
            raise StoreError(f"the store {path} cannot be opened: {failed}") from failed
        self._gathered: list[_Job] = []
        self._jobs: queue.SimpleQueue[list[_Job] | None] = queue.SimpleQueue()
        self._committing = threading.Lock()
        self._short = short
        self._usual = max(short, SHORT) * 2
        self._reader = concurrent.futures.ThreadPoolExecutor(1, "store-reader")
        self._writer = threading.Thread(target=self._write_all, name="store-writer", daemon=True)
        self._writer.start()
        self._closed = False

    async def write(
        self,
        job: Callable[[sqlite3.Connection], T],
        *,
        frees_room: bool = False,
        alone: bool = False,
    ) -> T:
        """Run `job` in the next transaction and return its result after the commit.

        The work is not taken back when the caller is cancelled while it waits.

        Args:
            job: the statements; it may be run twice, the first time without effect.
            frees_room: it is written even while the disk is full.
            alone: nothing else goes on that the loop would do meanwhile.

        Raises:
            StoreError: the transaction was not committed.
            Exception: what `job` raised; it then changed nothing.
        """
        if self._closed:
            raise StoreError("the store is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        piece = _Job(loop, job, frees_room, future)
        if not (alone and self._usual <= self._short and self._commit_here(piece)):
            if not self._gathered:
                loop.call_soon(self._hand_over)
            self._gathered.append(piece)
        return await future

    def _hand_over(self) -> None:
        """Give the writer what was asked for in one turn of the loop: it is woken once for all."""
        gathered, self._gathered = self._gathered, []
        if gathered:
            self._jobs.put(gathered)

    def _commit_here(self, piece: _Job) -> bool:
        """Commit one piece in this thread; return whether it was done, whatever became of it."""
        if self._gathered or not self._jobs.empty() or not self._committing.acquire(blocking=False):
            return False  # the thread of the writer is at work, and takes this one along
        try:
            self._commit_or_fail([piece])
        finally:
            self._committing.release()
        _deliver([piece])
        return True

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run `query` on what is committed."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reader, query, self._reading)

    def close(self) -> None:
        """Finish what waits, then close; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._hand_over()
        self._jobs.put(None)
        self._writer.join()
        self._reader.shutdown(wait=True)
        self._reading.close()
        self._connection.close()

    def _write_all(self) -> None:
        open_ = True
        while open_:
            batch: list[_Job] = []
            jobs = self._jobs.get()
            while jobs is not None:
                batch += jobs
                if len(batch) >= LARGEST_BATCH:
                    break
                try:
                    jobs = self._jobs.get_nowait()
                except queue.Empty:
                    break
            open_ = jobs is not None
            if batch:
                with self._committing:
                    self._commit_or_fail(batch)
                with contextlib.suppress(RuntimeError):  # the loop has closed: nobody waits
                    batch[0].loop.call_soon_threadsafe(_deliver, batch)

    def _commit_or_fail(self, batch: list[_Job]) -> None:
        """Commit a batch, and note how long that took; each piece has its result or error then."""
        began = time.monotonic()
        try:
            self._commit_all(batch)
        except OSError as failed:
            # Of the ballast's file. Were the thread to end, every write would wait for ever;
            # nothing was committed, for the file is touched before a commit.
            for each in batch:
                each.error = StoreError(f"the store did not take the change: {failed}")
        self._usual += (time.monotonic() - began - self._usual) * _WEIGHT

    def _commit_all(self, batch: list[_Job]) -> None:
        """Commit a batch; on a full disk, what frees room is tried again.

        Raises:
            OSError: the ballast's file could not be looked at or removed; nothing is committed.
        """
        full = self._ballast is not None and self._ballast.is_out()
        failed = None if full else self._commit(batch)
        if failed is not None and self._ballast is not None and _is_full(failed):
            self._ballast.throw()
            full = True
        if full:
            freeing = [job for job in batch if job.frees_room]
            for job in batch:
                job.error = StoreError("the store did not take the change: the disk is full")
            failed = self._commit(freeing) if freeing else None
            refused = freeing
        else:
            refused = batch
        if failed is not None:
            for job in refused:
                job.error = StoreError(f"the store did not take the change: {failed}")

    def _commit(self, batch: list[_Job]) -> sqlite3.Error | None:
        """Run a batch as one transaction; return why nothing of it was committed."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            if not self._run_straight(batch):
                self._connection.execute("ROLLBACK")
                self._connection.execute("BEGIN IMMEDIATE")
                for job in batch:
                    self._run_apart(job)
            self._connection.execute("COMMIT")
        except sqlite3.Error as failed:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            return failed
        return None

    def _run_straight(self, batch: list[_Job]) -> bool:
        """Run the pieces of a batch; return whether none of them raised."""
        try:
            for job in batch:
                job.error = None
                job.result = job.run(self._connection)
        except sqlite3.OperationalError:
            raise
        except Exception:
            return False
        return True

    def _run_apart(self, job: _Job) -> None:
        """Run one piece so that it can be taken back alone."""
        job.result, job.error = None, None
        self._connection.execute("SAVEPOINT job")
        try:
            job.result = job.run(self._connection)
        except sqlite3.OperationalError:
            raise
        except Exception as error:
            self._connection.execute("ROLLBACK TO job")
            job.error = error
        self._connection.execute("RELEASE job")


def _is_full(failed: sqlite3.Error) -> bool:
    # An error that SQLite itself did not raise has no code.
    return getattr(failed, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def _deliver(batch: list[_Job]) -> None:
    for job in batch:
        if job.future.done():
            continue
        if job.error is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.error)
