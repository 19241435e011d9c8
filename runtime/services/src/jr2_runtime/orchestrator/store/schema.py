"""The tables, as a numbered list of migrations to which lines are only ever added.

`PRAGMA user_version` says how many were applied. Each is one transaction, so a kill in the middle
leaves the former version. A database of a later version is refused, not touched.
"""

from __future__ import annotations

import sqlite3
from typing import Final

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """
        CREATE TABLE meta (
            key TEXT PRIMARY KEY,
            value TEXT NOT NULL
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE assemblies (
            hash TEXT PRIMARY KEY,
            kit_version TEXT NOT NULL,
            instance TEXT NOT NULL,
            current INTEGER NOT NULL CHECK (current IN (0, 1)),
            published_at INTEGER NOT NULL,
            workflows TEXT NOT NULL
        ) STRICT
        """,
        "CREATE UNIQUE INDEX assemblies_current ON assemblies (current) WHERE current = 1",
        # The snapshot stands last: a query that does not read it never touches its pages.
        """
        CREATE TABLE runs (
            id TEXT PRIMARY KEY,
            instance_id TEXT NOT NULL,
            workflow TEXT NOT NULL,
            assembly TEXT NOT NULL,
            shape TEXT NOT NULL,
            status TEXT NOT NULL
                CHECK (status IN ('live', 'done', 'error', 'cancelled', 'lost', 'drifted')),
            reason TEXT,
            seq INTEGER NOT NULL,
            started_at INTEGER NOT NULL,
            updated_at INTEGER NOT NULL,
            view TEXT NOT NULL,
            snapshot BLOB NOT NULL
        ) STRICT
        """,
        "CREATE INDEX runs_live ON runs (assembly, workflow) WHERE status = 'live'",
        "CREATE INDEX runs_settled ON runs (updated_at) WHERE status <> 'live'",
        """
        CREATE TABLE tasks (
            run TEXT NOT NULL,
            key TEXT NOT NULL,
            machine TEXT NOT NULL,
            slot TEXT NOT NULL,
            input TEXT NOT NULL,
            PRIMARY KEY (run, key)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE timers (
            run TEXT NOT NULL,
            key TEXT NOT NULL,
            due_at INTEGER NOT NULL,
            PRIMARY KEY (run, key)
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX timers_due ON timers (due_at)",
    ),
    (
        """
        CREATE TABLE answers (
            key TEXT PRIMARY KEY,
            fingerprint TEXT NOT NULL,
            code INTEGER NOT NULL,
            body TEXT NOT NULL,
            answered_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID
        """,
        "CREATE INDEX answers_answered ON answers (answered_at)",
    ),
    (
        # How many Gates are open: what is shown of a run says it too, but only to who parses it.
        "ALTER TABLE runs ADD COLUMN gates INTEGER NOT NULL DEFAULT 0",
        "UPDATE runs SET gates = ifnull(json_array_length(view, '$.gates'), 0)"
        " WHERE status = 'live'",
        "CREATE INDEX runs_gateless ON runs (id) WHERE status = 'live' AND gates = 0",
        "DROP INDEX runs_live",
        "CREATE INDEX runs_live ON runs (assembly, workflow, shape) WHERE status = 'live'",
        "CREATE INDEX runs_observed ON runs (workflow) WHERE status = 'live'",
    ),
)


class NewerDatabase(Exception):
    """The database was written by a later version of jr2."""


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the database to the last version.

    Args:
        connection: in autocommit mode (`isolation_level=None`).

    Raises:
        NewerDatabase: it has more migrations than this program knows.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise NewerDatabase(
            f"the state was written by a later version of jr2 (its tables are at {version}, "
            f"this program knows {len(MIGRATIONS)})"
        )
    for number, statements in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number}")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
