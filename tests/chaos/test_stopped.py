"""Programs that stand still for a while and go on: a frozen container, a laptop that slept.

`JR2_CHAOS_STOP` says for how many seconds; a change of the host or its limits is worth 60.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.chaos.load import children, under_load

SECONDS = float(os.environ.get("JR2_CHAOS_STOP", "3"))
PROGRESS = 12

pytestmark = pytest.mark.timeout(600 + 8 * SECONDS)


def stop_and_go_on(processes: list[int]) -> None:
    # An Assembly process that makes no step for long is ended and another one started.
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGSTOP)
    time.sleep(SECONDS)
    for process in reversed(processes):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)


@pytest.mark.parametrize(
    "which",
    [
        pytest.param(lambda main, worker: [main], id="the main process"),
        pytest.param(lambda main, worker: [worker], id="the worker's supervisor"),
        pytest.param(lambda main, worker: children(worker), id="the Assembly processes"),
        pytest.param(lambda main, worker: [worker, *children(worker)], id="the worker container"),
        pytest.param(lambda main, worker: [main, worker, *children(worker)], id="the whole pod"),
    ],
)
def test_a_stop_loses_nothing_and_faults_no_run(
    pod: Any, which: Callable[[int, int], list[int]]
) -> None:
    worker, main = pod.start_worker(), pod.start_orchestrator()
    with under_load(pod) as load:
        for _ in range(2):
            load.progress(PROGRESS)
            stop_and_go_on(which(main.pid, worker.pid))
        load.progress(PROGRESS)
    assert (main.poll(), worker.poll()) == (None, None)
