"""What the machine itself takes: the trips and the syncs of steps, and no work.

One process asks another over a socket, gets an answer of the length of a step's, and commits one row
with a sync of the disk, again and again. Each side sleeps while it waits, as ours do; so this is the
most steps of one run that any design with a process for user code makes on the machine.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from pathlib import Path

_ASKED = b"x" * 200
_ANSWER = b"x" * 900


def open_log(folder: Path) -> sqlite3.Connection:
    """Return a new database whose commits are synced, with one row."""
    connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, body BLOB)")
    connection.execute("INSERT INTO runs VALUES (1, x'')")
    return connection


def commit(connection: sqlite3.Connection, number: int) -> None:
    """Commit one row; another one each time, for SQLite writes nothing for one that stays."""
    connection.execute("UPDATE runs SET body = ?", (b"%d" % number + _ANSWER,))


def p99(folder: Path, count: int, rate: float) -> float:
    """Return the milliseconds in which 99 of 100 synced commits are done.

    Args:
        folder: on the disk that is measured.
        count: how many are made.
        rate: how many begin in each second.
    """
    connection = open_log(folder)
    took = []
    first = time.perf_counter()
    for number in range(count):
        due = first + number / rate
        time.sleep(max(0.0, due - time.perf_counter()))
        began = time.perf_counter()
        commit(connection, number)
        took.append(time.perf_counter() - began)
    connection.close()
    took.sort()
    return took[int(count * 0.99)] * 1000


def steps(folder: Path, count: int) -> float:
    """Return the bare steps of each second.

    Args:
        folder: on the disk that is measured.
        count: how many are made.
    """
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        while theirs.recv(4096):
            theirs.sendall(_ANSWER)
        os._exit(0)
    theirs.close()
    connection = open_log(folder)
    try:
        began = time.perf_counter()
        for number in range(count):
            ours.sendall(_ASKED)
            left = len(_ANSWER)
            while left:
                left -= len(ours.recv(4096))
            commit(connection, number)
        return count / (time.perf_counter() - began)
    finally:
        ours.close()
        os.waitpid(child, 0)
        connection.close()
