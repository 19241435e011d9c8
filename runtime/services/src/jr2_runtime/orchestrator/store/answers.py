"""The statements about answers that were given: a request with a key is done once.

The key of a request, its fingerprint and its answer are one transaction with what the request did.
So whoever lost an answer asks again under the same key and gets the same answer, also from a
program that was killed between the commit and the answer. A request that was refused did nothing,
and is not remembered.

An answer is kept for seven days. When all of them take more than a number of bytes, the oldest go
sooner, but none that is younger than five minutes; so they never fill the volume by themselves.

Source: design §4.3, ADR-0122.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

KEPT_FOR_MS: Final = 7 * 24 * 3600 * 1000
"""An answer is kept this long."""
KEPT_AT_LEAST_MS: Final = 5 * 60 * 1000
"""And at least this long, however many there are."""
MOST_BYTES: Final = 128 * 2**20
"""Of all answers; beyond it the oldest go."""
FEW: Final = 50_000
"""Answers whose bytes need not be counted."""
_HELD: Final = "SELECT total(length(key) + length(fingerprint) + length(body) + 100) FROM answers"
"""A row and its place in the index take 100 bytes beside its texts."""
_OLDEST: Final = (
    "SELECT key, length(key) + length(fingerprint) + length(body) + 100 FROM answers"
    " WHERE answered_at < ? ORDER BY answered_at LIMIT ?"
)
SWEPT_AT_ONCE: Final = 10_000
"""How many rows one transaction of a sweep removes, so that it does not hold up events."""
DROPPED_AT_ONCE: Final = 1_000
"""How many one transaction removes before their time, which happens while events come quickly."""
_MOST_ROWS: Final = 32
"""Of one statement."""
_INSERT: Final = "INSERT INTO answers (key, fingerprint, code, body, answered_at) VALUES"


class Repeated(Exception):
    """The request was done before, under the same key; the transaction changed nothing."""


class OtherRequest(Exception):
    """The key is that of another request; the transaction changed nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """A request that carries a key."""

    key: str
    fingerprint: str
    """A digest of the method, the path and the body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was answered."""

    code: int
    body: str
    """JSON text."""


def find(db: sqlite3.Connection, once: Once) -> Answer | None:
    """Return what the request was answered; `None` when its key is new.

    Raises:
        OtherRequest: the key is that of a request with another fingerprint.
    """
    row = db.execute(
        "SELECT fingerprint, code, body FROM answers WHERE key = ?", (once.key,)
    ).fetchone()
    if row is None:
        return None
    if row[0] != once.fingerprint:
        raise OtherRequest(once.key)
    return Answer(code=row[1], body=row[2])


def keep(db: sqlite3.Connection, once: Once | None, answer: Answer, now: int) -> None:
    """Record the answer of a request, in the transaction that does what it asks for.

    Args:
        db: in that transaction.
        once: `None` for a request without a key: nothing is recorded.
        answer: what will be answered.
        now: milliseconds since the epoch.

    Raises:
        Repeated: it was done before.
        OtherRequest: the key is that of another request.
    """
    if once is None:
        return
    if find(db, once) is not None:
        raise Repeated(once.key)
    db.execute(
        f"{_INSERT} (?, ?, ?, ?, ?)",
        (once.key, once.fingerprint, answer.code, answer.body, now),
    )


def keep_all(db: sqlite3.Connection, given: Sequence[Once], answer: Answer, now: int) -> None:
    """Record the same answer of many requests at once.

    Raises:
        sqlite3.IntegrityError: one of the keys was used before.
    """
    for at in range(0, len(given), _MOST_ROWS):
        part = given[at : at + _MOST_ROWS]
        values: list[object] = []
        for once in part:
            values += (once.key, once.fingerprint, answer.code, answer.body, now)
        rows = ", ".join(["(?, ?, ?, ?, ?)"] * len(part))
        db.execute(f"{_INSERT} {rows}", values)


def sweep(db: sqlite3.Connection, now: int) -> int:
    """Delete up to `SWEPT_AT_ONCE` answers that are older than seven days; return how many."""
    return db.execute(
        "DELETE FROM answers WHERE key IN (SELECT key FROM answers WHERE answered_at < ? LIMIT ?)",
        (now - KEPT_FOR_MS, SWEPT_AT_ONCE),
    ).rowcount


def held_bytes(db: sqlite3.Connection) -> int:
    """Return how many bytes the answers take; 0 while they are few."""
    (count,) = db.execute("SELECT count(*) FROM answers").fetchone()
    if count <= FEW:
        return 0
    (held,) = db.execute(_HELD).fetchone()
    return int(held)


def drop_oldest(db: sqlite3.Connection, now: int, excess: int) -> int:
    """Delete the oldest answers, up to `DROPPED_AT_ONCE`; return how many bytes they took.

    Args:
        db: in a transaction.
        now: milliseconds since the epoch; what is younger than five minutes stays.
        excess: how many bytes have to go.
    """
    found = db.execute(_OLDEST, (now - KEPT_AT_LEAST_MS, DROPPED_AT_ONCE)).fetchall()
    freed, going = 0, []
    for key, cost in found:
        if freed >= excess:
            break
        freed += cost
        going.append((key,))
    db.executemany("DELETE FROM answers WHERE key = ?", going)
    return freed
