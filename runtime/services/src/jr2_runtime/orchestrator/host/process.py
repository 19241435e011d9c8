"""One Assembly's process, as long as somebody needs it: opened, loaded, and opened again.

Many steps are on their way to it at once; it makes one after another. When it dies, or answers
nothing for 2 s, the steps that were under way are tried again one by one, each alone in the process,
so that the second time it is known which of them did it: the run of that step faults. Tasks go to
other processes of the same Assembly.

Tasks share the event loop of their process, so one that blocks it stops them all, and cannot be
stopped itself. The loop is asked for a sign of life each second, and after each stop of a task; a
process whose loop is silent is ended. That is told to the tasks as a crash is, so that `cells` finds
the culprit; after a stop nobody is blamed, for the task that was stopped may have done it.

Source: design §4.4.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from jr2 import host_wire

from .lanes import Lanes
from .link import Answer, AssemblyAway, Link, LinkLost

LOAD_DEADLINE: Final = 60.0
STEP_DEADLINE: Final = 2.0
WINDOW: Final = 256
"""How many requests, or groups of them, are on their way to a process at once."""
_SECOND_LOOK: Final = 0.05
PING_EVERY: Final = 1.0
"""Seconds between two pings of a loop, and the length of one period of silence."""
SILENCE: Final = 5
"""How many periods a loop may be silent."""
STOP_SILENCE: Final = 2
"""How many periods it may be silent after it was told to stop a task."""
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 5.0

log = logging.getLogger("jr2.host")


class StruckOut(Exception):
    """A step ended its process, or did not answer, as often as it may."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why there is no process: `away` when the worker is not there, which may pass."""

    text: str
    away: bool


@dataclass(slots=True, kw_only=True, eq=False)
class Ask:
    """One of the steps that are asked for together."""

    text: str
    """The request as `Link.ask_all` takes it."""
    body: bytes
    """The snapshot."""
    is_kept: bool
    """The process has likely kept the snapshot, so it is sent when it is asked for only."""
    dropped: bool = False
    """Nobody wants the answer any more: what was lost is not tried again."""


A = TypeVar("A", bound=Ask)
Outcome = Answer | StruckOut
"""What became of an `Ask`."""


class AssemblyProcess:
    """The process of one Assembly.

    Args:
        assembly: 64 hex digits.
        open_link: opens a link to a new process; raises `AssemblyAway`.
        step_deadline: seconds in which a step must answer.
        ping_every: seconds between two pings of its loop; `None` for a process without tasks.
    """

    def __init__(
        self,
        assembly: str,
        open_link: Callable[[str], Awaitable[Link]],
        *,
        step_deadline: float = STEP_DEADLINE,
        ping_every: float | None = None,
    ) -> None:
        self.assembly = assembly
        self._open_link = open_link
        self._step_deadline = step_deadline
        self._ping_every = ping_every
        self._lanes = Lanes(WINDOW)
        self._watched: Link | None = None
        self._link: Link | None = None
        self._loaded: host_wire.Loaded | None = None
        self._changed = asyncio.Condition()
        self._problem: Problem | None = None
        self._attempts = 0

    async def run(self) -> None:
        """Keep a process there until cancelled; what cannot be opened is tried again."""
        pause = FIRST_PAUSE
        while True:
            problem = await self._once()
            if problem is None:
                pause = FIRST_PAUSE
                continue
            async with self._changed:
                self._problem = problem
                self._attempts += 1
                self._changed.notify_all()
            log.warning(
                "no Assembly process",
                extra={"assembly": self.assembly[:12], "reason": problem.text},
            )
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _once(self) -> Problem | None:
        """Open, load and serve one process; return why it could not be, `None` when it could."""
        try:
            link = await self._open_link(self.assembly)
        except AssemblyAway as away:
            return Problem(str(away), away=True)
        served = True
        try:
            async with asyncio.TaskGroup() as group:
                serving = group.create_task(link.serve())
                loaded = await self._load(link)
                if isinstance(loaded, str):
                    served = False
                    link.end(loaded, by_us=True)
                    problem = loaded
                else:
                    async with self._changed:
                        self._link, self._loaded, self._problem = link, loaded, None
                        self._attempts += 1
                        self._changed.notify_all()
                    if self._ping_every is not None:
                        probing = group.create_task(self._probe(link, self._ping_every))
                        serving.add_done_callback(lambda _: probing.cancel())
                lost = await serving
        finally:
            link.end("the Orchestrator let go of the Assembly process", by_us=True)
            self._link = None
        if not served:
            return Problem(problem, away=False)
        log.info(
            "an Assembly process ended",
            extra={"assembly": self.assembly[:12], "reason": lost.reason},
        )
        return None

    async def _load(self, link: Link) -> host_wire.Loaded | str:
        try:
            async with asyncio.timeout(LOAD_DEADLINE):
                reply, _ = await link.ask({"op": "load"})
        except TimeoutError:
            return f"it did not load within {LOAD_DEADLINE:g} s"
        except LinkLost as lost:
            return f"it did not load: {lost.reason}"
        if isinstance(reply, host_wire.Broken):
            return f"it did not load: {reply.error}"
        if not isinstance(reply, host_wire.Loaded):
            return "it did not load: the Assembly process answered something else"
        return reply

    async def _probe(self, link: Link, every: float) -> None:
        """Ping the loop of a process as long as it lives, and end the process when it is silent."""
        while link.lost is None:
            if await _silent(link, SILENCE, every):
                silence = SILENCE * every
                reason = f"a task blocked its process for {silence:g} s"
                link.end(reason, by_us=False, blocked=silence)
                log.warning(
                    "an Assembly process was ended",
                    extra={"assembly": self.assembly[:12], "reason": reason},
                )
                return
            await asyncio.sleep(every)

    async def first_load(self) -> host_wire.Loaded | Problem:
        """Wait for the outcome of the first attempt, and of the next ones while it is away."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: (
                    self._link is not None or (self._problem is not None and not self._problem.away)
                )
            )
            if self._link is None:
                assert self._problem is not None  # what was waited for
                return self._problem
            assert self._loaded is not None  # a link is kept only with what it loaded
            return self._loaded

    async def loaded(self) -> host_wire.Loaded:
        """Wait for the process and return what it says of its Assembly."""
        await self._ready()
        assert self._loaded is not None  # a link is kept only with what it loaded
        return self._loaded

    async def _ready(self) -> Link:
        if self._link is not None and self._link.lost is None:
            return self._link
        async with self._changed:
            await self._changed.wait_for(lambda: self._link is not None and self._link.lost is None)
            assert self._link is not None  # what was waited for
            return self._link

    async def start(self, request: dict[str, Any], body: bytes) -> Answer:
        """Ask for the first step of a run; wait for the process when it is not there.

        Args:
            request: the fields of the request.
            body: the input.

        Raises:
            StruckOut: the process ended or did not answer, twice.
            frames.FrameError: the request is longer than a frame may be.
        """
        await self._lanes.enter()
        try:
            answer = await self._attempt(request, body)
        finally:
            self._lanes.leave()
        if not isinstance(answer, str):
            return answer
        async with self._lanes.alone():
            answer = await self._attempt(request, body)
        if not isinstance(answer, str):
            return answer
        raise _struck_out(answer)

    async def steps(self, asks: Sequence[A]) -> AsyncGenerator[list[tuple[A, Outcome]]]:
        """Ask for steps of different runs together, and yield what became of them as it comes.

        Those that were lost are tried again one by one at the end, each alone in the process; one
        that is lost again is struck out. One that nobody wants any more is not yielded then.
        """
        lost: list[A] = []
        await self._lanes.enter()
        try:
            async for answers in self._together(asks, lost):
                yield answers
        finally:
            self._lanes.leave()
        for ask in lost:
            async with self._lanes.alone():
                if ask.dropped:
                    continue
                answer = await self._again(ask)
            yield [(ask, answer)]

    async def _together(
        self, asks: Sequence[A], lost: list[A]
    ) -> AsyncGenerator[list[tuple[A, Outcome]]]:
        """Ask once; those of which the process has no snapshot are asked once more with it."""
        reason = ""
        for is_first in (True, False):
            link = await self._ready()
            self._watch(link)
            bodies = [b"" if is_first and ask.is_kept else ask.body for ask in asks]
            replies = link.ask_all(
                [(ask.text, body) for ask, body in zip(asks, bodies, strict=True)]
            )
            missing: list[A] = []
            left = len(asks)
            while left:
                come: list[tuple[A, Outcome]] = []
                for place, answer in await replies.next():
                    left -= 1
                    if isinstance(answer, LinkLost):
                        lost.append(asks[place])
                        reason = answer.reason
                    elif is_first and isinstance(answer[0], host_wire.Missing):
                        missing.append(asks[place])
                    else:
                        come.append((asks[place], answer))
                if come:
                    yield come
            if lost:
                log.warning(
                    "steps were lost",
                    extra={
                        "assembly": self.assembly[:12],
                        "reason": reason,
                        "steps": len(lost),
                    },
                )
            if not missing:
                return
            asks = missing

    async def _again(self, ask: Ask) -> Outcome:
        """Ask for a step that was lost, when nothing else is asked of the process."""
        link = await self._ready()
        self._watch(link)
        ((_, answer),) = await link.ask_all([(ask.text, ask.body)]).next()
        return _struck_out(answer.reason) if isinstance(answer, LinkLost) else answer

    async def _attempt(self, request: dict[str, Any], body: bytes) -> Answer | str:
        """Ask once; return the answer, or why there is none."""
        link = await self._ready()
        self._watch(link)
        try:
            return await link.ask(request, body)
        except LinkLost as lost:
            log.warning(
                "a step was lost",
                extra={"assembly": self.assembly[:12], "reason": lost.reason},
            )
            return lost.reason

    def _watch(self, link: Link) -> None:
        """See to it that a process that owes answers gives one in time."""
        if link is not self._watched:
            self._watched = link
            asyncio.get_running_loop().call_later(self._step_deadline, self._look, link, False)

    def _look(self, link: Link, again: bool) -> None:
        """End a process that has owed answers and given none for as long as a step may take.

        Args:
            link: the process.
            again: it was silent at the last look too. One look is not enough: when this program
                was held up itself, the answer is there and is read before the second.
        """
        if link.lost is not None or not link.owes:
            self._watched = None
            return
        loop = asyncio.get_running_loop()
        left = link.silent_since + self._step_deadline - loop.time()
        if left > 0:
            loop.call_later(left, self._look, link, False)
        elif not again:
            loop.call_later(_SECOND_LOOK, self._look, link, True)
        else:
            link.end(f"it did not answer within {self._step_deadline:g} s", by_us=True)

    async def task(self, request: dict[str, Any]) -> Answer:
        """Have a task run, and wait for its end, however long it takes.

        Raises:
            LinkLost: the process ended before the task did.
            frames.FrameError: the request is longer than a frame may be.
        """
        link = await self._ready()
        return await link.ask(request)

    async def worker_went(self) -> bool:
        """After a loss: wait for the next attempt and say whether the worker was away then."""
        if self._link is not None and self._link.lost is None:
            return False  # the next one is there already
        seen = self._attempts
        async with self._changed:
            await self._changed.wait_for(lambda: self._attempts != seen)
        return self._problem is not None and self._problem.away

    async def stop_task(self, run: str, key: str) -> None:
        """Have the process stop a task that nobody waits for; end it when its loop does not.

        The loop answers as soon as it has passed the stop on. A task that takes its time to clean up
        holds up nothing, and may.
        """
        link = self._link
        if link is None or self._ping_every is None:
            return  # the task is not running
        link.tell({"op": "stop_task", "run_id": run, "key": key})
        if await _silent(link, STOP_SILENCE, self._ping_every):
            silence = STOP_SILENCE * self._ping_every
            reason = f"the stop of a task was not acknowledged within {silence:g} s"
            link.end(reason, by_us=True)
            log.warning(
                "an Assembly process was ended",
                extra={"assembly": self.assembly[:12], "run": run, "reason": reason},
            )


def _struck_out(reason: str) -> StruckOut:
    return StruckOut(f"the Machine's code was ended twice at this step: {reason}")


async def _silent(link: Link, periods: int, every: float) -> bool:
    """Ping the loop of a process; return whether it said nothing for so many periods.

    Periods are counted, and no time is compared: when this program was held up itself, the answer is
    there already, and there is still a period in which it is read.

    Args:
        link: the process; one whose link ends is not silent.
        periods: how many periods to wait.
        every: the seconds of one period.
    """
    asked = asyncio.ensure_future(link.ask({"op": "ping"}))
    # The link may end when nobody looks at the answer any more.
    asked.add_done_callback(lambda asked: asked.cancelled() or asked.exception())
    try:
        for _ in range(periods):
            done, _ = await asyncio.wait({asked}, timeout=every)
            if done:
                return False
        return True
    finally:
        asked.cancel()
