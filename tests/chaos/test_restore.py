"""A restore that is killed again and again: the store is whole at each moment, and goes back once."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import httpx2

from jr2 import names
from tests.waiting import LIMIT, wait_for

WORKFLOWS = Path(__file__).parent / "workflows"
KILLS = 8


def numbers(pod: Any, run: str) -> list[int]:
    found = pod.status(run)["context"]["numbers"]
    assert isinstance(found, list)
    return found


def note(pod: Any, run: str, number: int) -> None:
    answer = pod.client.post(
        f"/runs/{run}/gates/writing/events", json={"type": "note", "number": number}
    )
    assert answer.status_code == 200, answer.text


def test_a_restore_that_is_killed_at_any_moment_ends_at_the_backup(pod: Any) -> None:
    pod.start_worker()
    main = pod.start_orchestrator()
    source = {"ledger": (WORKFLOWS / "ledger.py").read_text()}
    assert pod.publish(pod.assembly(source)).status_code == 201
    run = pod.start_run("ledger")
    note(pod, run, 1)
    made = pod.backup("now")
    assert made.returncode == 0, made.stderr
    backup = made.stdout.strip()
    note(pod, run, 2)
    later = pod.start_run("ledger")
    pod.kill(main)

    chosen = random.Random(20261130)
    database = pod.folder / "state" / names.STATE_DATABASE
    for _ in range(KILLS):
        main = pod.begin_orchestrator(**{names.ENV_RESTORE: backup})
        time.sleep(chosen.random() * 2.0)
        pod.kill(main)
        for store in database.parent.glob("*.db"):
            with contextlib.closing(sqlite3.connect(store)) as opened:
                assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)

    pod.start_orchestrator(**{names.ENV_RESTORE: backup})
    assert numbers(pod, run) == [1]
    assert pod.client.get(f"/runs/{later}").status_code == 404
    assert pod.assemblies()["stuck"] == []
    note(pod, run, 3)
    with contextlib.closing(sqlite3.connect(f"{database}.before-restore")) as opened:
        kept = opened.execute("SELECT id FROM runs ORDER BY id").fetchall()
    assert kept == [(each,) for each in sorted((run, later))]


def test_a_restored_store_is_not_restored_again_by_the_next_start(pod: Any) -> None:
    pod.start_worker()
    main = pod.start_orchestrator()
    source = {"ledger": (WORKFLOWS / "ledger.py").read_text()}
    assert pod.publish(pod.assembly(source)).status_code == 201
    run = pod.start_run("ledger")
    backup = pod.backup("now").stdout.strip()
    for number in (1, 2):
        pod.kill(main)
        main = pod.start_orchestrator(**{names.ENV_RESTORE: backup})
        note(pod, run, number)
    assert numbers(pod, run) == [1, 2]


def test_a_backup_that_is_not_there_stops_the_start_and_touches_nothing(pod: Any) -> None:
    pod.start_worker()
    main = pod.start_orchestrator()
    source = {"ledger": (WORKFLOWS / "ledger.py").read_text()}
    assert pod.publish(pod.assembly(source)).status_code == 201
    run = pod.start_run("ledger")
    pod.kill(main)
    failed = pod.begin_orchestrator(**{names.ENV_RESTORE: "state-20200101T000000Z.db"})
    assert failed.wait(timeout=LIMIT) == 1
    assert 'there is no backup \\"state-20200101T000000Z.db\\"' in pod.log("orchestrator")
    pod.start_orchestrator()
    note(pod, run, 1)


def test_a_backup_made_under_load_has_all_that_was_answered_before_it(pod: Any) -> None:
    pod.start_worker()
    main = pod.start_orchestrator()
    source = {"ledger": (WORKFLOWS / "ledger.py").read_text()}
    assert pod.publish(pod.assembly(source)).status_code == 201
    run = pod.start_run("ledger")
    answered, stop = [0], threading.Event()

    def write() -> None:
        with httpx2.Client(
            base_url=pod.client.base_url, headers=pod.client.headers, trust_env=False, timeout=LIMIT
        ) as client:
            while not stop.is_set():
                event = {"type": "note", "number": answered[0]}
                client.post(f"/runs/{run}/gates/writing/events", json=event).raise_for_status()
                answered[0] += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_for("some events", lambda: answered[0] > 50)
        before = answered[0]
        made = pod.backup("now")
        after = answered[0]
        wait_for("some more", lambda: answered[0] > after + 50)
    finally:
        stop.set()
        writer.join()
    assert made.returncode == 0, made.stderr

    pod.kill(main)
    pod.start_orchestrator(**{names.ENV_RESTORE: made.stdout.strip()})
    kept = numbers(pod, run)
    assert kept == list(range(len(kept)))
    assert before <= len(kept) <= after + 1
    note(pod, run, len(kept))
