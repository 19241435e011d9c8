"""Wait for one rollout: look, judge, and end with the line or with the whole error.

The wait looks at the cluster every two seconds and asks `judge`. kubectl waits beside it, so that
at the limit its own last words can be printed; when the rollout fails before, kubectl is stopped
and the error says what does not heal.

Source: seed 001 (Fix a rollout that does not complete), design §5.4, spec/converge.md §6.3.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

from jr2.errors import StepFailed

from ..api import Api
from ..closed_list import DEPLOYMENT, POD, REPLICA_SET
from . import decide, evidence, verify
from .decide import Observation, Progress, Workload
from .diagnosis import diagnose
from .gather import gather

LIMIT_SECONDS: Final = 180
LOOK_SECONDS: Final = 2.0


class Kubectl(Protocol):
    """`kubectl rollout status`, which waits beside us."""

    def last_words(self) -> str | None:
        """Return what it said when its limit passed; `None` while it waits or when it is content."""

    def stop(self) -> None:
        """End it, if it still runs."""


def observe(api: Api, workload: Workload) -> Observation:
    """Read what a rollout is judged by."""
    found = api.objects(POD, workload.namespace, labelSelector=workload.selector)
    return Observation(
        deployment=api.get(DEPLOYMENT.path(workload.namespace, workload.name)),
        replica_sets=api.objects(REPLICA_SET, workload.namespace, labelSelector=workload.selector),
        pods=found,
    )


def wait(
    api: Api,
    workload: Workload,
    *,
    say: Callable[[str], None],
    progress: Callable[[str | None], None],
    kubectl: Callable[[Workload], Kubectl],
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Wait until the rollout is complete and its pods run the expected image.

    Args:
        api: the API server.
        workload: what is rolled out.
        say: prints one line of the contract.
        progress: shows what is waited for, on a terminal; `None` takes it away.
        kubectl: starts `kubectl rollout status` for a workload.
        sleep: waits some seconds.
        clock: the seconds that passed, from any start.

    Raises:
        StepFailed: the rollout failed, with evidence and diagnosis; or a pod runs another image.
    """
    started = clock()
    so_far = Progress()
    beside: Kubectl | None = None
    say(verify.waiting_line(workload))
    try:
        while True:
            seen = observe(api, workload)
            so_far, verdict = decide.judge(so_far, seen)
            if verdict.state == "done":
                for text in verdict.restarted:
                    say(f"{workload.layer}: {text} while it started")
                say(verify.conclude(workload, verify.look(workload, seen.pods)))
                return
            if verdict.state == "failed":
                words = (
                    f"stopped after {clock() - started:.0f}s: {verdict.reason} does not heal by "
                    "waiting"
                )
                raise _failed(api, workload, so_far, seen, words)
            if beside is None:
                beside = kubectl(workload)
            last_words = beside.last_words()
            if last_words is not None:
                raise _failed(api, workload, so_far, seen, last_words)
            progress(f"{workload.layer}: waiting for rollout — {verdict.reason}")
            sleep(LOOK_SECONDS)
    finally:
        progress(None)
        if beside is not None:
            beside.stop()


def _failed(
    api: Api, workload: Workload, progress: Progress, seen: Observation, words: str
) -> StepFailed:
    found = gather(api, workload, progress, seen)
    return StepFailed(evidence.message(found, diagnose(found), words))
