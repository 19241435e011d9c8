"""Wait for one rollout: look, judge, and end with the line or with the whole error.

The wait looks at the cluster every two seconds and asks `judge`. Its limit is its own clock's;
kubectl waits beside it, so that at the limit its own last words can be printed. When the rollout
fails before, kubectl is stopped and the error says what does not heal.

A node that pulls an image does not use up the limit: the limit begins again when the pull is over,
and a line says every 30 seconds what is pulled. An API server that does not answer for a moment
does not end the wait.

Source: seed 001 (Fix a rollout that does not complete), design §5.4, spec/converge.md §6.3, field
cases (An image that is pulled for minutes), ADR-0151.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, Protocol

import httpx2

from jr2.errors import StepFailed

from ..api import Api, ApiError
from . import decide, evidence, restart, verify
from .decide import Observation, Progress, Verdict
from .diagnosis import diagnose
from .gather import gather, observe
from .workload import LIMIT_SECONDS, Workload

LOOK_SECONDS: Final = 2.0
PULL_LIMIT_SECONDS: Final = 1800
PULL_LINE_SECONDS: Final = 30
SILENT_SECONDS: Final = 30
"""How long the API server may not answer before the wait ends."""
LAST_WORDS_SECONDS: Final = 5
"""How long after the limit kubectl may still speak."""


class Kubectl(Protocol):
    """`kubectl rollout status`, which waits beside us."""

    def last_words(self) -> str | None:
        """Return what it said when it gave up; `None` while it waits or when it is content."""

    def stop(self) -> None:
        """End it, if it still runs."""


def wait(
    api: Api,
    workload: Workload,
    *,
    say: Callable[[str], None],
    progress: Callable[[str | None], None],
    kubectl: Callable[[Workload], Kubectl],
    check_lease: Callable[[], None],
    began: str,
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
        check_lease: raises when this run may no longer write.
        began: when this run began, before it applied anything, as `restart.moment` gives it.
        sleep: waits some seconds.
        clock: the seconds that passed, from any start.

    Raises:
        StepFailed: the rollout failed, with evidence and diagnosis; or a pod runs another image.
    """
    say(verify.waiting_line(workload))
    waiting = _Wait(api, workload, say=say, kubectl=kubectl, clock=clock)
    try:
        seen = waiting.look(sleep)
        reason = decide.left_over(seen, before=began)
        if reason:
            check_lease()
            say(restart.restart_line(workload, reason))
            restart.restart(api, workload)
            seen = waiting.look(sleep)
        while True:
            verdict = waiting.judge(seen)
            if verdict.state == "done":
                break
            progress(f"{workload.layer}: waiting for rollout — {verdict.reason}")
            sleep(LOOK_SECONDS)
            seen = waiting.look(sleep)
    finally:
        progress(None)
        waiting.stop()
    for text in verdict.restarted:
        say(f"{workload.layer}: {text} while it started")
    say(verify.conclude(workload, verify.look(workload, seen.pods)))


class _Wait:
    """The clocks of one wait, and the kubectl beside it."""

    def __init__(
        self,
        api: Api,
        workload: Workload,
        *,
        say: Callable[[str], None],
        kubectl: Callable[[Workload], Kubectl],
        clock: Callable[[], float],
    ) -> None:
        self._api = api
        self._workload = workload
        self._say = say
        self._start_kubectl = kubectl
        self._clock = clock
        self._started = clock()
        self._since = self._started
        self._pulling_since: float | None = None
        self._pull_lines = 0
        self._so_far = Progress()
        self._beside: Kubectl | None = None

    def look(self, sleep: Callable[[float], None]) -> Observation:
        """Look at the cluster; ask again for a while when the API server does not answer."""
        until = self._clock() + SILENT_SECONDS
        while True:
            try:
                return observe(self._api, self._workload)
            except (httpx2.TransportError, ApiError) as error:
                refused = isinstance(error, ApiError) and error.status < 500 and error.status != 429
                if refused or self._clock() >= until:
                    raise
            sleep(LOOK_SECONDS)

    def judge(self, seen: Observation) -> Verdict:
        """Judge a look, by what was seen and by the clocks.

        Raises:
            StepFailed: the rollout does not heal, or its time is over.
        """
        self._so_far, verdict = decide.judge(self._so_far, seen)
        if verdict.state == "done":
            return verdict
        if verdict.state == "failed":
            raise self._failed(seen, f"{verdict.reason} does not heal by waiting")
        if verdict.pulling:
            self._pulls(seen, verdict.pulling)
        else:
            self._waits(seen, verdict.reason)
        return verdict

    def stop(self) -> None:
        """End kubectl, if it runs."""
        if self._beside is not None:
            self._beside.stop()
            self._beside = None

    def _pulls(self, seen: Observation, images: tuple[str, ...]) -> None:
        now = self._clock()
        if self._pulling_since is None:
            self._pulling_since, self._pull_lines = now, 0
        self.stop()
        self._since = now
        pulled_for = now - self._pulling_since
        if pulled_for >= PULL_LIMIT_SECONDS:
            raise self._failed(seen, f"the image is still being pulled ({', '.join(images)})")
        if pulled_for >= PULL_LINE_SECONDS * (self._pull_lines + 1):
            self._pull_lines += 1
            self._say(f"{self._workload.layer}: pulling {', '.join(images)} — {pulled_for:.0f}s")

    def _waits(self, seen: Observation, reason: str) -> None:
        self._pulling_since = None
        now = self._clock()
        if self._beside is None:
            # From here on both clocks run: ours decides, and kubectl has the last word.
            self._beside, self._since = self._start_kubectl(self._workload), now
        if now - self._since < LIMIT_SECONDS:
            return
        words = self._beside.last_words()
        if words is not None:
            raise self._failed(seen, words, as_it_is=True)
        if now - self._since >= LIMIT_SECONDS + LAST_WORDS_SECONDS:
            raise self._failed(seen, f"the limit of {LIMIT_SECONDS}s passed ({reason})")

    def _failed(self, seen: Observation, words: str, *, as_it_is: bool = False) -> StepFailed:
        seconds = self._clock() - self._started
        found = gather(self._api, self._workload, self._so_far, seen)
        text = words if as_it_is else f"stopped after {seconds:.0f}s: {words}"
        return StepFailed(evidence.message(found, diagnose(found), text))
