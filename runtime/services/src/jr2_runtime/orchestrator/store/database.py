"""Run statements: all writes in one thread with group commit, all reads in another.

The writer takes everything that waits, runs each piece under a savepoint of its own, and commits
them together with one sync of the disk. A piece that raises takes back its own changes only. No
caller is answered before the commit, and when the commit fails, every piece of it fails.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from .schema import migrate

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], Any]
LARGEST_BATCH = 512


class StoreError(Exception):
    """The transaction was not committed: nothing of it is in the store."""


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

    Raises:
        NewerDatabase: a later version of jr2 wrote it.
        sqlite3.Error: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._connection = connect(path)
        migrate(self._connection)
        self._reading = connect(path, read_only=True)
        self._jobs: queue.SimpleQueue[
            tuple[asyncio.AbstractEventLoop, Job, asyncio.Future[Any]] | None
        ] = queue.SimpleQueue()
        self._reader = concurrent.futures.ThreadPoolExecutor(1, "store-reader")
        self._writer = threading.Thread(target=self._write_all, name="store-writer", daemon=True)
        self._writer.start()
        self._closed = False

    async def write(self, job: Callable[[sqlite3.Connection], T]) -> T:
        """Run `job` in the next transaction and return its result after the commit.

        The work is not taken back when the caller is cancelled while it waits.

        Raises:
            StoreError: the transaction was not committed.
            Exception: what `job` raised; it then changed nothing.
        """
        if self._closed:
            raise StoreError("the store is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._jobs.put((loop, job, future))
        return await future

    async def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run `query` on what is committed."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reader, query, self._reading)

    def close(self) -> None:
        """Finish what waits, then close; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._jobs.put(None)
        self._writer.join()
        self._reader.shutdown(wait=True)
        self._reading.close()
        self._connection.close()

    def _write_all(self) -> None:
        open_ = True
        while open_:
            batch = []
            job = self._jobs.get()
            while job is not None:
                batch.append(job)
                if len(batch) == LARGEST_BATCH:
                    break
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
            open_ = job is not None
            if batch:
                self._commit(batch)

    def _commit(
        self, batch: list[tuple[asyncio.AbstractEventLoop, Job, asyncio.Future[Any]]]
    ) -> None:
        outcomes: list[tuple[asyncio.Future[Any], Any, BaseException | None]] = []
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for _, job, future in batch:
                self._connection.execute("SAVEPOINT job")
                try:
                    outcomes.append((future, job(self._connection), None))
                except sqlite3.OperationalError:
                    raise
                except Exception as error:
                    self._connection.execute("ROLLBACK TO job")
                    outcomes.append((future, None, error))
                self._connection.execute("RELEASE job")
            self._connection.execute("COMMIT")
        except sqlite3.Error as failed:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            lost = StoreError(f"the store did not take the change: {failed}")
            outcomes = [(future, None, lost) for _, _, future in batch]
        loop = batch[0][0]
        with contextlib.suppress(RuntimeError):  # the loop has closed: nobody waits any more
            loop.call_soon_threadsafe(_deliver, outcomes)


def _deliver(outcomes: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
    for future, result, error in outcomes:
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
