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
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jr2 import names

WORKFLOWS = Path(__file__).parent / "workflows"
KILLS = int(os.environ.get("JR2_CHAOS_KILLS", "8"))
"""How often the Orchestrator is killed; each fourth time its worker too."""
LATEST = 0.25
"""Seconds after the last progress in which the kill comes."""
WRITERS = 6
PROGRESS = 12
"""Events that must be answered between two kills."""
WORKER_TOO = 4
"""Each so many kills the worker dies too."""


class Writer(threading.Thread):
    """Starts a run, writes into it, and starts the next; each request until it is answered."""

    def __init__(self, pod: Any, stop: threading.Event, seed: int) -> None:
        super().__init__()
        self._stop_asked = stop
        self._chosen = random.Random(seed)
        self._http = httpx2.Client(
            base_url=pod.client.base_url, headers=pod.client.headers, timeout=30, trust_env=False
        )
        self.answered: dict[str, list[int]] = {}
        self.lost = 0
        self.failure: BaseException | None = None

    def _send(self, path: str, body: dict[str, Any]) -> Any:
        headers = {names.HEADER_IDEMPOTENCY_KEY: str(uuid.uuid4())}
        end = time.monotonic() + 120
        while True:
            assert time.monotonic() < end, f"{path} was not answered"
            try:
                answer = self._http.post(path, json=body, headers=headers)
            except httpx2.ConnectError:
                time.sleep(0.01)
                continue
            except httpx2.TransportError:
                self.lost += 1
                continue
            if answer.status_code in (200, 201):
                return answer.json()
            # The Gate opens again after the task and the timer; the worker comes back by itself.
            assert answer.status_code in (404, 503), answer.text
            time.sleep(0.01)

    def run(self) -> None:
        try:
            while not self._stop_asked.is_set():
                run = self._send("/workflows/clockwork/runs", {})["runId"]
                numbers = self.answered.setdefault(run, [])
                for number in range(self._chosen.randrange(1, 12)):
                    event = {"type": "note", "number": number}
                    self._send(f"/runs/{run}/gates/waiting/events", event)
                    numbers.append(number)
        except BaseException as failure:
            self.failure = failure
        finally:
            self._http.close()


def copied(pod: Any, main: subprocess.Popen[bytes], target: Path) -> Path:
    """Copy the store's files as they are at this moment."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    main.send_signal(signal.SIGSTOP)
    # The signal has reached each thread once the state says so.
    while Path(f"/proc/{main.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.001)
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


def settled_down(pod: Any, run: str, numbers: list[int]) -> bool:
    """Whether a run is back at its Gate with exactly this behind it."""
    context = pod.status(run)["context"]
    assert context["numbers"] == numbers
    assert context["returned"] == numbers[: len(context["returned"])]
    assert context["fired"] <= len(numbers)
    return len(numbers) == len(context["returned"]) == int(context["fired"])


@pytest.mark.timeout(120 + 10 * KILLS)
def test_every_promise_holds_however_often_the_orchestrator_is_killed(pod: Any) -> None:
    worker = pod.start_worker()
    main = pod.start_orchestrator()
    source = {"clockwork": (WORKFLOWS / "clockwork.py").read_text()}
    assert pod.publish(pod.assembly(source)).status_code == 201
    stop = threading.Event()
    writers = [Writer(pod, stop, seed) for seed in range(WRITERS)]
    for writer in writers:
        writer.start()

    def answered() -> dict[str, list[int]]:
        return {run: list(ns) for each in writers for run, ns in dict(each.answered).items()}

    chosen = random.Random(20261130)
    longest = 0.0
    for kill in range(KILLS):
        before = sum(map(len, answered().values()))
        began = time.monotonic()
        while sum(map(len, answered().values())) < before + PROGRESS:
            assert [each.failure for each in writers if each.failure] == []
            assert time.monotonic() < began + 60, f"no progress after {kill} kills"
            time.sleep(0.005)
        time.sleep(chosen.random() * LATEST)
        promised = answered()
        held = numbers_in(copied(pod, main, pod.folder / "copy"))
        for run, numbers in promised.items():
            assert held[run][: len(numbers)] == numbers, f"the copy lacks what was answered: {run}"
        pod.kill(main)
        if kill % WORKER_TOO == WORKER_TOO - 1:
            for process in [worker.pid, *children(worker.pid)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            worker.wait()
            worker = pod.start_worker()
        down = time.monotonic()
        main = pod.start_orchestrator()
        longest = max(longest, time.monotonic() - down)
        assert pod.assemblies()["stuck"] == []
    stop.set()
    for writer in writers:
        writer.join()
    assert [each.failure for each in writers if each.failure] == []
    lost = sum(each.lost for each in writers)
    written = answered()
    assert lost > 0, "no answer was lost, so nothing was tried"

    assert {run["runId"] for run in pod.client.get("/runs").json()} == set(written)
    for run, numbers in written.items():
        end = time.monotonic() + 60
        while not settled_down(pod, run, numbers):
            assert time.monotonic() < end, f"run {run} stands still: {pod.status(run)}"
            time.sleep(0.02)
    assert pod.assemblies()["stuck"] == []
    print(
        f"{KILLS} kills, {len(written)} runs, {sum(map(len, written.values()))} events, tasks and "
        f"timers, each once; {lost} answers lost and asked for again; longest start {longest:.1f} s"
    )


def children(process: int) -> list[int]:
    """Return the process ids of a process's children."""
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in text.split()]
