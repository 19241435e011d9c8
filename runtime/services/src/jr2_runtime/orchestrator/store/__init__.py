"""The durable record of all runs: one SQLite database, one writer thread, one reader thread.

What a step changed is one transaction: the new snapshot, the event that it consumed, its timers
and the tasks that it starts. A transaction that was answered is on the disk (`synchronous=FULL`).
The modules here hold the statements, as functions over a connection; `database` runs them.

Source: design §4.3.
"""

from __future__ import annotations

from .answers import Answer, Once, OtherRequest, Repeated
from .ballast import Ballast
from .database import Store, StoreError
from .rows import Assembly, Live, Run, Settled, Stale, Task, Timer

__all__ = [
    "Answer",
    "Assembly",
    "Ballast",
    "Live",
    "Once",
    "OtherRequest",
    "Repeated",
    "Run",
    "Settled",
    "Stale",
    "Store",
    "StoreError",
    "Task",
    "Timer",
]
