"""A wall clock that jumps while runs wait: a machine that is set, or that wakes up.

The programs run under libfaketime, which reads the time from a file that the tests write.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.load import under_load
from tests.waiting import wait_for

LIBRARY = Path(f"/usr/lib/{platform.machine()}-linux-gnu/faketime/libfaketimeMT.so.1")
HOUR, DAY = 3600, 86_400

pytestmark = [
    pytest.mark.skipif(not LIBRARY.exists(), reason="the Debian package faketime is not installed"),
]


class Clock:
    """The wall clock of programs that are started with its environment."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)

    def set(self, offset: int) -> None:
        """Set it so many seconds off the machine's clock."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{offset:+d}s\n")
        os.replace(fresh, self._file)

    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            # The clock of a wait for a condition is the one that goes forward only.
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
        }


@pytest.fixture
def clock(pod: Any) -> Clock:
    return Clock(pod.folder / "clock")


NAP = """
from datetime import timedelta
from jr2 import Context, Machine

class Ctx(Context):
    fired: int = 0

m = Machine("nap", context=Ctx, start=lambda i: Ctx())
asleep = m.state("asleep", initial=True)
awake = m.state("awake")
asleep.after(timedelta(days=7), to=awake, assign=lambda c: c.set(fired=c.fired + 1))
machine = m.build()
"""


def test_a_clock_that_jumps_loses_no_event_and_fires_no_timer_twice(pod: Any, clock: Clock) -> None:
    pod.start_worker()
    pod.start_orchestrator(**clock.environment())
    with under_load(pod) as load:
        for offset in (3 * HOUR, 2 * HOUR, 30 * DAY, -30 * DAY, 0):
            load.progress(24)
            clock.set(offset)
        load.progress(24)


def test_a_timer_of_seven_days_fires_once_when_the_clock_has_passed_it(
    pod: Any, clock: Clock, restart: Callable[[], None]
) -> None:
    run = pod.start_run("nap")
    clock.set(8 * DAY)
    restart()
    wait_for("the timer", lambda: pod.status(run)["value"] == "awake")
    clock.set(0)
    restart()
    time.sleep(0.2)
    clock.set(8 * DAY)
    restart()
    assert pod.status(run)["context"]["fired"] == 1


@pytest.fixture
def restart(pod: Any, clock: Clock) -> Callable[[], None]:
    """A pod with the Workflow, and what kills and starts the Orchestrator."""
    pod.start_worker()
    running = [pod.start_orchestrator(**clock.environment())]
    assert pod.publish(pod.assembly({"nap": NAP})).status_code == 201

    def kill_and_start() -> None:
        pod.kill(running.pop())
        running.append(pod.start_orchestrator(**clock.environment()))

    return kill_and_start
