"""What the machine itself takes for the steps of one run: the trips and the syncs, and no work.

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
    connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, body BLOB)")
        connection.execute("INSERT INTO runs VALUES (1, x'')")
        began = time.perf_counter()
        for _ in range(count):
            ours.sendall(_ASKED)
            left = len(_ANSWER)
            while left:
                left -= len(ours.recv(4096))
            connection.execute("UPDATE runs SET body = ?", (_ANSWER,))
        return count / (time.perf_counter() - began)
    finally:
        ours.close()
        os.waitpid(child, 0)
        connection.close()
