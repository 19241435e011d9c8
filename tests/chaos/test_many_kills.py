"""Kill the Orchestrator under load, again and again, and hold every promise against what is there.

`JR2_CHAOS_KILLS` says how often; a change of the store or the engine is worth 200.
After each kill: every start that was answered exists, every event that was answered was applied
once, no run is stuck, and the work goes on. Before it, a copy of the store's files is taken at a
moment that nobody chose, as a snapshot of the volume would: it opens, and holds what was answered.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from jr2 import names
from tests.chaos.load import kill_container, under_load
from tests.waiting import wait_for

KILLS = int(os.environ.get("JR2_CHAOS_KILLS", "8"))
"""How often the Orchestrator is killed; each fourth time its worker too."""
LATEST = 0.25
"""Seconds after the last progress in which the kill comes."""
PROGRESS = 12
"""Events that must be answered between two kills."""
WORKER_TOO = 4
"""Each so many kills the worker dies too."""


def stands_still(process: int) -> bool:
    """Whether a stop has reached each thread: one that writes ends its write first."""
    try:
        texts = [each.read_text() for each in Path(f"/proc/{process}/task").glob("*/stat")]
    except OSError:  # a thread ended meanwhile
        return False
    return {text.rpartition(")")[2].split()[0] for text in texts} == {"T"}


def copied(pod: Any, main: subprocess.Popen[bytes], target: Path) -> Path:
    """Copy the store's files as they are at this moment."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    main.send_signal(signal.SIGSTOP)
    wait_for("it stands still", lambda: stands_still(main.pid))
    for file in (pod.folder / "state").glob(f"{names.STATE_DATABASE}*"):
        shutil.copy(file, target / file.name)
    main.send_signal(signal.SIGCONT)
    return target / names.STATE_DATABASE


def numbers_in(database: Path) -> dict[str, list[int]]:
    """Open a copy of a store; return what each of its runs has written down."""
    with contextlib.closing(sqlite3.connect(database)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        rows = db.execute("SELECT id, view FROM runs").fetchall()
    return {run: json.loads(view)["context"]["numbers"] for run, view in rows}


@pytest.mark.timeout(600 + 60 * KILLS)
def test_every_promise_holds_however_often_the_orchestrator_is_killed(pod: Any) -> None:
    worker = pod.start_worker()
    main = pod.start_orchestrator()
    chosen = random.Random(20261130)
    longest = 0.0
    with under_load(pod) as load:
        for kill in range(KILLS):
            load.progress(PROGRESS)
            time.sleep(chosen.random() * LATEST)
            promised = load.answered()
            held = numbers_in(copied(pod, main, pod.folder / "copy"))
            for run, numbers in promised.items():
                assert held[run][: len(numbers)] == numbers, f"the copy lacks an answer: {run}"
            pod.kill(main)
            if kill % WORKER_TOO == WORKER_TOO - 1:
                kill_container(worker)
                worker = pod.start_worker()
            down = time.monotonic()
            main = pod.start_orchestrator()
            longest = max(longest, time.monotonic() - down)
            assert pod.assemblies()["stuck"] == []
    assert load.lost() > 0, "no answer was lost, so nothing was tried"
    written = load.answered()
    print(
        f"{KILLS} kills, {len(written)} runs, {sum(map(len, written.values()))} events, tasks and "
        f"timers, each once; {load.lost()} answers lost and asked for again; "
        f"longest start {longest:.1f} s"
    )
