"""A load that keeps count: what was answered, and whether all of it is there in the end.

The Workflow is `clockwork`: each number goes through a Gate, a task and a timer, and the run counts
what came back of each, so that what is lost or done twice shows.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2

from jr2 import names
from tests.waiting import LIMIT

WORKFLOWS = Path(__file__).parent / "workflows"


class Writer(threading.Thread):
    """Starts a run, writes into it, and starts the next; each request until it is answered."""

    def __init__(self, pod: Any, stop: threading.Event, seed: int) -> None:
        super().__init__()
        self._stop_asked = stop
        self._chosen = random.Random(seed)
        self._http = httpx2.Client(
            base_url=pod.client.base_url, headers=pod.client.headers, timeout=LIMIT, trust_env=False
        )
        self.answered: dict[str, list[int]] = {}
        self.lost = 0
        self.failure: BaseException | None = None

    def _send(self, path: str, body: dict[str, Any]) -> Any:
        headers = {names.HEADER_IDEMPOTENCY_KEY: str(uuid.uuid4())}
        end = time.monotonic() + LIMIT
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
            # The Gate opens again after the task and the timer; the worker comes back by itself,
            # and a full disk is freed.
            assert answer.status_code in (404, 503, 507), answer.text
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


class Load:
    """Several writers, and what they were promised."""

    def __init__(self, pod: Any, writers: int = 6) -> None:
        self._pod = pod
        self._stop = threading.Event()
        self.others: set[str] = set()
        """Runs that somebody else started."""
        self._writers = [Writer(pod, self._stop, seed) for seed in range(writers)]

    def answered(self) -> dict[str, list[int]]:
        """The numbers of each run whose event was answered, in their order."""
        return {run: list(ns) for each in self._writers for run, ns in dict(each.answered).items()}

    def lost(self) -> int:
        """How many answers were lost and asked for again."""
        return sum(each.lost for each in self._writers)

    def progress(self, events: int, within: float = LIMIT) -> None:
        """Wait until so many more events were answered."""
        aim = sum(map(len, self.answered().values())) + events
        end = time.monotonic() + within
        while sum(map(len, self.answered().values())) < aim:
            assert [each.failure for each in self._writers if each.failure] == []
            assert time.monotonic() < end, f"{events} events were not answered in {within} s"
            time.sleep(0.005)

    def start(self) -> None:
        """Publish the Workflow and start the writers."""
        source = {"clockwork": (WORKFLOWS / "clockwork.py").read_text()}
        assert self._pod.publish(self._pod.assembly(source)).status_code == 201
        for writer in self._writers:
            writer.start()

    def end(self) -> None:
        """Let each writer finish what it does."""
        self._stop.set()
        for writer in self._writers:
            if writer.ident is not None:
                writer.join()

    def judge(self) -> None:
        """Check that each promise was kept, once each, and that no run stands still."""
        assert [each.failure for each in self._writers if each.failure] == []
        written = self.answered()
        there = {run["runId"] for run in self._pod.client.get("/runs").json()}
        assert there == set(written) | self.others
        for run, numbers in written.items():
            end = time.monotonic() + LIMIT
            while not settled_down(self._pod, run, numbers):
                found = self._pod.status(run)
                assert time.monotonic() < end, f"run {run} stands still: {found}"
                time.sleep(0.02)
        assert self._pod.assemblies()["stuck"] == []


@contextlib.contextmanager
def under_load(pod: Any, writers: int = 6) -> Iterator[Load]:
    """A pod that is written to for the length of the block, and judged after it."""
    load = Load(pod, writers)
    try:
        load.start()
        yield load
    finally:
        load.end()
    load.judge()


def settled_down(pod: Any, run: str, numbers: list[int]) -> bool:
    """Whether a run is back at its Gate with exactly this behind it."""
    context = pod.status(run)["context"]
    assert context["numbers"] == numbers
    assert context["returned"] == numbers[: len(context["returned"])]
    assert context["fired"] <= len(numbers)
    return len(numbers) == len(context["returned"]) == int(context["fired"])


def children(process: int) -> list[int]:
    """Return the process ids of a process's children."""
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in text.split()]


def kill_container(worker: subprocess.Popen[bytes]) -> None:
    """Kill a worker and its Assembly processes together, as the end of its container does.

    A child that sees the end of its supervisor first ends by itself, and is gone then.
    """
    for process in [worker.pid, *children(worker.pid)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    worker.wait()
