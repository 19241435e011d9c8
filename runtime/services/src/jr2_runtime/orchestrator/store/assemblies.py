"""The statements about Assemblies: which are held, which is current, who published last."""

from __future__ import annotations

import sqlite3

from jr2.wire import LeaseStamp

from .rows import Assembly, Run, Stale
from .runs import settle

_LEASE = "lease"


def held(db: sqlite3.Connection) -> list[Assembly]:
    """Return every Assembly, the current one first, then the latest published."""
    rows = db.execute(
        "SELECT hash, kit_version, instance, workflows, current FROM assemblies"
        " ORDER BY current DESC, published_at DESC, hash"
    )
    return [
        Assembly(
            hash=row[0],
            kit_version=row[1],
            instance=row[2],
            workflows=row[3],
            current=bool(row[4]),
        )
        for row in rows
    ]


def last_lease(db: sqlite3.Connection) -> LeaseStamp | None:
    """Return the newest Lease that has published."""
    row = db.execute("SELECT value FROM meta WHERE key = ?", (_LEASE,)).fetchone()
    return None if row is None else LeaseStamp.parse(row[0])


def check_lease(db: sqlite3.Connection, stamp: LeaseStamp) -> None:
    """Refuse a Lease that another has followed.

    Raises:
        Stale: a later Lease has published, or another one of the same moment.
    """
    newest = last_lease(db)
    if newest is not None and newest != stamp and stamp.acquired <= newest.acquired:
        raise Stale("a later converge has taken the Lease over")


def record_lease(db: sqlite3.Connection, stamp: LeaseStamp) -> None:
    """Remember who publishes, so that whoever held the Lease before is refused from now on.

    Raises:
        Stale: as `check_lease`.
    """
    check_lease(db, stamp)
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (_LEASE, stamp.header()))


def make_current(db: sqlite3.Connection, assembly: Assembly, now: int) -> None:
    """Make one Assembly the current one, and record it when it is new."""
    db.execute(
        "UPDATE assemblies SET current = 0 WHERE current = 1 AND hash <> ?", (assembly.hash,)
    )
    db.execute(
        "INSERT INTO assemblies (hash, kit_version, instance, workflows, current, published_at)"
        " VALUES (?, ?, ?, ?, 1, ?) ON CONFLICT (hash) DO UPDATE SET"
        " kit_version = excluded.kit_version, instance = excluded.instance,"
        " workflows = excluded.workflows, current = 1, published_at = excluded.published_at",
        (assembly.hash, assembly.kit_version, assembly.instance, assembly.workflows, now),
    )


def drift_others(db: sqlite3.Connection, kit_version: str, now: int) -> list[Run]:
    """End every live run whose Assembly is for another Kit version; return them as they are now.

    The reason is that of seed 002 and spec/runtime.md §1.8.
    """
    rows = db.execute(
        "SELECT r.id, r.workflow, a.hash, a.kit_version FROM runs r"
        " JOIN assemblies a ON a.hash = r.assembly"
        " WHERE r.status = 'live' AND a.kit_version <> ?",
        (kit_version,),
    ).fetchall()
    drifted = []
    for run, workflow, hash_, old in rows:
        reason = (
            f'workflow "{workflow}": Assembly {hash_[:12]} was published for Kit version {old}; '
            f"this Orchestrator is {kit_version}"
        )
        settled = settle(db, run, "drifted", reason, now)
        assert settled is not None  # the same transaction has just read it as live
        drifted.append(settled)
    return drifted


def release(db: sqlite3.Connection) -> list[str]:
    """Forget every Assembly that is neither current nor held by a live run; return their hashes."""
    rows = db.execute(
        "DELETE FROM assemblies WHERE current = 0 AND NOT EXISTS"
        " (SELECT 1 FROM runs r WHERE r.assembly = assemblies.hash AND r.status = 'live')"
        " RETURNING hash"
    ).fetchall()
    return [row[0] for row in rows]


def lose(db: sqlite3.Connection, hash_: str, now: int) -> list[str]:
    """Forget an Assembly whose files are gone, and end its live runs as `lost`; return their ids."""
    runs = db.execute("SELECT id FROM runs WHERE assembly = ? AND status = 'live'", (hash_,))
    ids = [row[0] for row in runs.fetchall()]
    reason = f"Assembly {hash_[:12]} is not on the state volume any more"
    for run in ids:
        settle(db, run, "lost", reason, now)
    db.execute("DELETE FROM assemblies WHERE hash = ?", (hash_,))
    return ids
