"""Take events, ask for steps, commit what they changed, and act on it afterwards.

For each event of a run: its Assembly's process makes a step from the stored snapshot; the new
snapshot, the consumed event, timers and tasks are committed in one transaction; then tasks start,
timers are armed, watchers are told and the sender is answered. A kill before the commit leaves the
run as it was, with the task or timer still to come; after it, nothing is done twice. How events of
many runs go together is the matter of `batches`.

Source: design §4.3 and §4.4.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import time
import uuid
from collections.abc import Sequence
from typing import Any, Final

from jr2 import frames, host_wire, names
from jr2.wire import RunStarted

from ..clock import Clock
from ..feeds import Feeds
from ..host import Processes, StruckOut
from ..metrics import Metrics, Running
from ..store import (
    Answer,
    Once,
    Run,
    Stale,
    Store,
    Task,
    answers,
)
from ..store import runs as rows
from ..store.rows import Timer
from . import told
from .batches import TAKEN, Batches
from .mailbox import Event, Item
from .refused import EventRefused, refused
from .registry import Registry
from .restore import Restored, failed_to_load, misfits
from .tasks import Tasks
from .timers import Timers
from .transition import Transition, after_step
from .turns import Waiting

ANSWER_DEADLINE: Final = 30.0
"""Seconds in which an event must have been asked for, else it is withdrawn."""
_LOOK_EVERY: Final = 1.0
"""Seconds between two looks for such events."""
MOST_OF_A_RUN: Final = 256
"""How many posted events of one run wait at once; a further one is refused."""
MOST_WAITING: Final = 4096
"""How many posted events wait at once, over all runs: what a full queue holds fits the memory."""
log = logging.getLogger("jr2.engine")


class Engine:
    """All runs of one Instance.

    Args:
        group: owns every coroutine of the engine.
        store: the record.
        processes: the Assembly processes.
        registry: the current Assembly.
        feeds: the watchers.
        clock: the time.
        metrics: counts the steps.
        most_tasks: how many tasks of user code run at once.
    """

    def __init__(
        self,
        *,
        group: asyncio.TaskGroup,
        store: Store,
        processes: Processes,
        registry: Registry,
        feeds: Feeds,
        clock: Clock,
        metrics: Metrics,
        most_tasks: int = names.MAX_TASKS,
    ) -> None:
        self._metrics = metrics
        self._group = group
        self._store = store
        self._processes = processes
        self._registry = registry
        self._feeds = feeds
        self._clock = clock
        self._posted = 0
        self._batches = Batches(
            group=group,
            store=store,
            processes=processes,
            registry=registry,
            clock=clock,
            feeds=feeds,
            metrics=metrics,
            act=self._act,
            has_settled=self.has_settled,
        )
        self._tasks = Tasks(
            group, processes, self._task_came_back, self._read_task, most=most_tasks
        )
        self._timers = Timers(store, clock, registry.kit_version, self._timer_fired)
        self._released = asyncio.Event()

    @property
    def released(self) -> asyncio.Event:
        """Set when a run of an older Assembly has settled: that one may be free now."""
        return self._released

    def running(self) -> Running:
        """Return what waits and what runs."""
        now = time.monotonic()
        waiting = [item.since for item in self._batches.waiting()]
        return Running(
            waiting=len(waiting),
            oldest=now - min(waiting) if waiting else 0.0,
            tasks=len(self._tasks),
            tasks_waiting=self._tasks.waiting,
        )

    async def recover(self, assemblies: Sequence[str], lost: Sequence[str] = ()) -> None:
        """Queue again what was in flight, and watch the timers; nothing runs before it is asked.

        Args:
            assemblies: those that this program can load, the current one first.
            lost: the runs that have just become `lost`, for the line of the start.
        """
        self._group.create_task(self._timers.run())
        self._group.create_task(self._withdraw())
        self._group.create_task(self._restore(assemblies, Restored(lost=list(lost))))

    async def _restore(self, assemblies: Sequence[str], restored: Restored) -> None:
        """Compare the shapes of each Assembly, one after the other, and start its tasks again."""
        for assembly in assemblies:
            try:
                await self._restore_one(assembly, restored)
            except Exception:
                # The root of this coroutine. The runs are live, and are compared when touched.
                log.exception("the runs of an Assembly were not compared")
            try:
                tasks = await self._store.read(
                    lambda db, assembly=assembly: rows.unfinished(db, assembly)  # type: ignore[misc]
                )
            except sqlite3.Error:
                # Of a damaged store. What can be read of it is shown, which a program that ends for
                # it again and again would not do.
                log.exception("the tasks of an Assembly were not started again")
                continue
            for task in tasks:
                self._tasks.queue(Waiting(*task))
        restored.announce()

    async def _restore_one(self, assembly: str, restored: Restored) -> None:
        saved = await self._store.read(lambda db: rows.shapes(db, assembly))
        if not saved:
            return
        # A process of its own for an older Assembly, which is not kept until a run is touched.
        is_current = assembly == self._registry.hash
        process = (
            self._processes.for_steps(assembly) if is_current else self._processes.another(assembly)
        )
        try:
            loaded = await process.first_load()
        finally:
            if not is_current:
                self._processes.end(process)
        if not isinstance(loaded, host_wire.Loaded):
            failed_to_load(assembly, loaded.text)
            held = await self._store.read(rows.held_by)
            restored.failed += held.get(assembly, [])
            return
        now = self._clock.now()
        for each in misfits(saved, loaded):
            settled = await self._store.write(
                lambda db, each=each: rows.settle_shape(  # type: ignore[misc]
                    db, assembly, (each.workflow, each.shape), each.status, each.reason, now
                )
            )
            for run in settled:
                self.has_settled(run)
            ids = [run.id for run in settled]
            (restored.lost if each.status == "lost" else restored.drifted).extend(ids)

    # --- what comes in ----------------------------------------------------------------------------
    async def start(self, workflow: str, given: dict[str, Any], once: Once | None = None) -> Answer:
        """Start a run of a Workflow of the current Assembly; return the answer with its ids.

        Args:
            workflow: its name.
            given: the input, for its door.
            once: the key of the request; the run is started once for it.

        Raises:
            Repeated, OtherRequest: the key was used before; no run was started.
            EventRefused: 404 no such Workflow, 400 the input does not fit the door, 503 no
                Assembly is current or the worker is away.
            StoreError: it could not be recorded; no run was started.
        """
        self._has_room()
        body = json.dumps(given, separators=(",", ":")).encode()
        # Its objects take many times its bytes, and the worker may be waited for.
        del given
        self._posted += 1
        try:
            for _ in range(2):
                try:
                    return await self._start(workflow, body, once)
                except Stale:
                    # The Assembly was released between the look and the commit: another is current.
                    continue
        finally:
            self._posted -= 1
        raise EventRefused(503, "the current Assembly changes; send the start again")

    async def _start(self, workflow: str, body: bytes, once: Once | None) -> Answer:
        current = self._registry.current
        if current is None:
            raise EventRefused(503, "no Assembly is current — `jr2 up` publishes one")
        if workflow not in current.workflows:
            known = ", ".join(current.workflows) or "none"
            raise EventRefused(404, f'no workflow "{workflow}" — workflows: {known}')
        run = Run(
            id=str(uuid.uuid4()),
            instance_id=str(uuid.uuid4()),
            workflow=workflow,
            assembly=current.hash,
            shape=current.workflows[workflow].shape,
            status="live",
            reason=None,
            seq=0,
            view='{"value":null}',
        )
        request = {"op": "start", "workflow": workflow, "run_id": run.id, "seq": run.seq}
        reply, made = await self._ask(run, request, body)
        now = self._clock.now()
        if not isinstance(reply, host_wire.Stepped):
            raise refused(reply)
        transition = after_step(run, reply, made, now)
        started = RunStarted(run_id=run.id, instance_id=run.instance_id)
        answer = Answer(code=201, body=started.model_dump_json(by_alias=True))

        def job(db: sqlite3.Connection) -> None:
            answers.keep(db, once, answer, now)
            rows.insert(db, transition.run, transition.changes, now)

        await self._store.write(job)
        self._batches.remember(transition.run)
        self._act(transition)
        return answer

    async def _ask(self, run: Run, request: dict[str, Any], body: bytes) -> tuple[Any, bytes]:
        """Ask for the first step of a run, which has no queue yet."""
        try:
            async with asyncio.timeout(ANSWER_DEADLINE):
                return await self._processes.for_steps(run.assembly).start(request, body)
        except TimeoutError as late:
            raise EventRefused(503, "the worker is away; nothing was started") from late
        except StruckOut as struck:
            raise EventRefused(500, str(struck)) from struck
        except frames.FrameError as large:
            raise EventRefused(413, str(large)) from large

    async def post(self, run: str, event: host_wire.GateEvent, once: Once | None = None) -> Answer:
        """Give an event to a Gate; return when the step that consumed it is on the disk.

        Args:
            run: its id.
            event: for one of its Gates.
            once: the key of the request; the event is taken once for it.

        Raises:
            Repeated, OtherRequest: the key was used before; the event was not taken.
            EventRefused: 404 no such run or open Gate, 400 not accepted, 412 another entry, 409
                the run waits for a publish, 503 the worker is away or too many events wait.
            StoreError: it could not be recorded; the event was not taken.
        """
        if self._batches.length(run) >= MOST_OF_A_RUN:
            raise EventRefused(
                503, f"{MOST_OF_A_RUN} events of run {run} wait; send it again later"
            )
        self._has_room()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[None] = loop.create_future()
        item = Item.of(event, answer=answer, once=once)
        del event
        self._posted += 1
        self._batches.put(run, item)
        try:
            await answer
        finally:
            self._posted -= 1
        return TAKEN

    async def _withdraw(self) -> None:
        """Take back, again and again, the events whose step was not asked for in time."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            oldest = time.monotonic() - ANSWER_DEADLINE
            for item in self._batches.waiting():
                if item.since < oldest and item.answer is not None and not item.asked:
                    item.fail(EventRefused(503, "the worker is away; the event was not taken"))

    def _has_room(self) -> None:
        if self._posted >= MOST_WAITING:
            raise EventRefused(503, f"{MOST_WAITING} events wait; send it again later")

    async def cancel(self, run: str, once: Once | None = None) -> Answer:
        """End a live run where it stands; one that has settled, or is unknown, stays as it is.

        Raises:
            Repeated, OtherRequest: the key was used before; nothing was done.
            StoreError: it could not be recorded.
        """
        now = self._clock.now()

        def job(db: sqlite3.Connection) -> Run | None:
            answers.keep(db, once, TAKEN, now)
            return rows.settle(db, run, "cancelled", None, now)

        settled = await self._store.write(job, frees_room=True)
        if settled is not None:
            self.has_settled(settled)
        return TAKEN

    def has_settled(self, run: Run) -> None:
        """Act on a run that was ended in the store: its queue, tasks and watchers end."""
        self._batches.drop(run)
        self._act(Transition(run=run, changes=rows.Changes()))

    def assembly_gone(self, assembly: str) -> None:
        """End the processes of an Assembly that was released."""
        self._processes.end_all(assembly)
        self._tasks.forget(assembly)

    def published(self) -> None:
        """Look at the timers again: runs may have become loadable."""
        self._timers.look()

    async def _read_task(self, run: str, key: str) -> Task | None:
        return await self._store.read(lambda db: rows.read_task(db, run, key))

    def _task_came_back(self, run: str, event: host_wire.TaskDone | host_wire.TaskFailed) -> None:
        self._batches.put(run, Item.of(event))

    def _timer_fired(self, timer: Timer) -> None:
        self._batches.put(
            timer.run,
            Item.of(
                host_wire.TimerFired(key=timer.key),
                done=lambda: self._timers.settled(timer.run, timer.key),
            ),
        )

    # --- acts, after the commit -------------------------------------------------------------------
    def _act(self, transition: Transition) -> None:
        run, changes = transition.run, transition.changes
        self._metrics.step(run.status)
        for key in changes.stopped:
            self._tasks.stop(run.id, key)
        if run.status == "live":
            for task in changes.started:
                self._tasks.start(task)
            if changes.armed:
                self._timers.look()
        else:
            self._tasks.stop_run(run.id)
            if run.assembly != self._registry.hash:
                self._released.set()
            log.info("a run has settled", extra={"run": run.id, "status": run.status})
        told.tell(self._feeds, run, transition.emitted, self._registry.hash)


__all__ = ["Engine", "Event"]
