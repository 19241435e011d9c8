"""Take the events of many runs together: ask for their steps, record them, act on them.

A run's events are taken one at a time, in their order. Runs whose next event waits are taken in
batches, a few batches of an Assembly at a time, for most of what an event costs is paid once for
all that go together: the way to the Assembly process and back, the transaction, the turns of the
loop. While a batch is under way the next one gathers, so batches grow with the load, and an event
that is alone waits for nobody.

What waits for the process of one Assembly never holds up the runs of another. A run is read when its
batch is taken, so however many wait, the snapshots of few are in memory; it is forgotten when its
queue is empty.

Source: design §4.3 and §4.4, ADR-0162.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Final

from jr2 import host_wire, names
from jr2.snapshot import quoted

from ..clock import Clock
from ..feeds import Feeds
from ..host import Ask, Outcome, Processes, StruckOut
from ..metrics import Metrics
from ..store import Answer, OtherRequest, Repeated, Run, Stale, Store, StoreError
from ..store import runs as rows
from ..store import steps as stored
from .mailbox import Item, Mailbox
from .recent import Recent, size_of
from .refused import EventRefused, not_open, refused, settled
from .registry import Registry
from .restore import misfit
from .transition import Transition, after_step, fault

TAKEN: Final = Answer(code=200, body='{"ok":true}')
"""What is answered to an event that was taken."""
MOST_AT_ONCE: Final = 64
"""How many runs go in one batch at most."""
FEW: Final = 32
"""So many runs go in one batch also where that leaves nothing for the other ones."""
BATCH_BYTES: Final = 8 * 2**20
"""What the runs of one batch take at most before their steps, but for the last of them."""
BATCHES: Final = 2
"""How many batches of an Assembly are under way at once: one in its process, one in the store.

Each batch is a commit and two trips, so more and smaller ones cost more than they save (ADR-0162).
"""
QUIET: Final = 16
"""After so many events of which none met another one, the next is believed to meet none either."""
_MOST_FOUND: Final = 256
"""How many runs are looked up at once."""
MOST_BYTES: Final = 64 * 2**20
"""Of runs that are in memory while their next event waits; a further one is read again."""

log = logging.getLogger("jr2.engine")


@dataclass(slots=True, kw_only=True, eq=False)
class _Asked(Ask):
    """A step that is asked for, and whose it is."""

    box: Mailbox
    item: Item
    run: Run
    """Before the step."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Line:
    """The runs of one Assembly whose next event waits for its step."""

    assembly: str
    ready: deque[Mailbox] = field(default_factory=deque)
    under_way: int = 0
    """How many coroutines take batches."""
    beginning: int = 0
    """How many of them have taken none yet."""


class Batches:
    """The events that wait, by run.

    Args:
        group: owns the coroutines.
        store: the record.
        processes: the Assembly processes.
        registry: the current Assembly.
        clock: the time.
        feeds: the watchers.
        metrics: counts the steps that `act` is not told of.
        act: acts on a transition that is on the disk; it is not told of one that asks for nothing
            while nobody watches.
        has_settled: acts on a run that was settled in the store by something else than a step.
    """

    def __init__(
        self,
        *,
        group: asyncio.TaskGroup,
        store: Store,
        processes: Processes,
        registry: Registry,
        clock: Clock,
        feeds: Feeds,
        metrics: Metrics,
        act: Callable[[Transition], None],
        has_settled: Callable[[Run], None],
    ) -> None:
        self._group = group
        self._store = store
        self._processes = processes
        self._registry = registry
        self._clock = clock
        self._feeds = feeds
        self._metrics = metrics
        self._act = act
        self._has_settled = has_settled
        self._boxes: dict[str, Mailbox] = {}
        self._recent = Recent()
        self._unknown: deque[Mailbox] = deque()
        self._is_finding = False
        self._lines: dict[str, _Line] = {}
        self._single = 0
        """How many events in a row met no other one."""
        self._bytes = 0
        """What the runs that wait in a line take."""

    def waiting(self) -> list[Item]:
        """Return the events that wait, or are under way."""
        return [item for box in self._boxes.values() for item in box.items]

    def length(self, run: str) -> int:
        """Return how many events of a run wait."""
        box = self._boxes.get(run)
        return 0 if box is None else len(box.items)

    def put(self, run: str, item: Item) -> None:
        """Queue an event of a run."""
        self._single = 0 if self._boxes else self._single + 1
        box = self._boxes.get(run)
        if box is not None:
            box.items.append(item)
            return
        known = self._recent.take(run)
        box = Mailbox(
            id=run,
            run=known,
            assembly=None if known is None else known.assembly,
            is_remembered=known is not None,
            is_kept=known is not None,
        )
        box.items.append(item)
        self._boxes[run] = box
        if known is None:
            self._go_on(box)
        else:
            self._is_ready(known.assembly, box)

    def remember(self, run: Run) -> None:
        """Keep a run that has just been started, so that its first event need not read it."""
        self._recent.put(run)

    def drop(self, run: Run) -> None:
        """Let go of a run that was settled in the store; its events are refused."""
        self._recent.forget(run.id)
        box = self._boxes.pop(run.id, None)
        if box is not None:
            box.is_gone = True
            if box.ask is not None:
                box.ask.dropped = True
            for item in box.items:
                item.fail(settled(run))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a coroutine that serves many events, so it belongs to the trace of none."""
        self._group.create_task(work, context=Context())

    # --- one run ----------------------------------------------------------------------------------
    def _go_on(self, box: Mailbox) -> None:
        """Have the first event of a run taken next, when there is one."""
        box.ask = None
        if box.is_gone:
            return
        if box.head() is None:
            del self._boxes[box.id]
            if box.run is not None:
                self._recent.put(box.run)
        elif box.run is not None and box.run.status != "live":
            self._is_over(box, box.run)
        elif box.assembly is not None:
            self._is_ready(box.assembly, box)
        else:
            self._unknown.append(box)
            if not self._is_finding:
                self._is_finding = True
                self._begin(self._find())

    def _is_over(self, box: Mailbox, run: Run) -> None:
        """Refuse all that waits for a run that has settled."""
        del self._boxes[box.id]
        for item in box.items:
            item.fail(settled(run))

    def _refuse(self, box: Mailbox, item: Item, error: Exception) -> None:
        """Do not take an event; the run is read again for the next one."""
        box.run = None
        item.fail(error)
        box.drop(item)
        self._go_on(box)

    def _could_not(self, box: Mailbox, error: Exception) -> None:
        """Something else failed than the event: what nobody posted is tried again later."""
        item = box.head()
        if item is None or box.is_gone:
            self._go_on(box)
            return
        if not isinstance(error, StoreError):
            item.context.run(
                log.error, "an event was not taken", exc_info=error, extra={"run": box.id}
            )
        if item.answer is not None:
            self._refuse(box, item, error)
            return
        if isinstance(error, StoreError):
            log.warning(
                "the event of a task or a timer is tried again",
                extra={"run": box.id, "reason": str(error)},
            )
        box.run = None
        asyncio.get_running_loop().call_later(box.longer_pause(), self._go_on, box)

    def _moved_on(self, box: Mailbox, item: Item) -> None:
        """The run is not as it was believed to be."""
        if box.is_remembered:
            box.run = None
            self._go_on(box)
        else:
            # The task or timer was consumed before, or the run settled meanwhile.
            error = EventRefused(409, "the run moved on; the event was not taken")
            self._refuse(box, item, error)

    # --- finding ----------------------------------------------------------------------------------
    async def _find(self) -> None:
        """Look up which Assemblies runs hold; this is the root of its coroutine."""
        while self._unknown:
            number = min(len(self._unknown), _MOST_FOUND)
            boxes = [self._unknown.popleft() for _ in range(number)]
            ids = [box.id for box in boxes]
            try:
                found = await self._store.read(lambda db, ids=ids: rows.assembly_of(db, ids))  # type: ignore[misc]
            except Exception as error:
                for box in boxes:
                    self._could_not(box, error)
                continue
            for box in boxes:
                box.assembly = found.get(box.id)
                item = box.head()
                if box.assembly is None and item is not None and not box.is_gone:
                    self._refuse(box, item, _no_run(box))
                else:
                    self._go_on(box)
        self._is_finding = False

    # --- batches ----------------------------------------------------------------------------------
    def _is_ready(self, assembly: str, box: Mailbox) -> None:
        line = self._lines.get(assembly)
        if line is None:
            line = self._lines[assembly] = _Line(assembly=assembly)
        if box.run is not None:
            size = size_of(box.run)
            if self._bytes + size > MOST_BYTES:
                box.run = None
            else:
                self._bytes += size
                box.bytes = size
        line.ready.append(box)
        if line.under_way < BATCHES and line.beginning * share(len(self._boxes)) < len(line.ready):
            line.under_way += 1
            line.beginning += 1
            self._begin(self._work(line))

    async def _work(self, line: _Line) -> None:
        """Take batch after batch until nothing is ready; this is the root of its coroutine."""
        line.beginning -= 1
        while line.ready:
            batch = self._next(line)
            left = set(batch)
            try:
                await self._take(line.assembly, batch, left)
            except Exception as error:
                for box in left:
                    self._could_not(box, error)
            # Whoever was answered gets to post the next event, which then goes with the others.
            await asyncio.sleep(0)
        line.under_way -= 1
        if not line.under_way:
            del self._lines[line.assembly]

    def _next(self, line: _Line) -> list[Mailbox]:
        """Take the next batch from a line."""
        batch: list[Mailbox] = []
        size, most = 0, share(len(self._boxes))
        while line.ready and len(batch) < most and size < BATCH_BYTES:
            box = line.ready.popleft()
            batch.append(box)
            size += box.bytes
            self._bytes -= box.bytes
            box.bytes = 0
        return batch

    async def _take(self, assembly: str, batch: Sequence[Mailbox], left: set[Mailbox]) -> None:
        """Make one step of each run.

        Args:
            assembly: that they hold.
            batch: the runs.
            left: those of which nothing has become yet.
        """
        await self._read(assembly, batch, left)
        why = await self._why_not(assembly)
        for box in batch:
            item, run = box.head(), box.run
            if box in left and item is not None and run is not None:
                try:
                    error = why or (item.gate is not None and not_open(run, item.gate)) or None
                except Exception as damaged:
                    # Of this row alone; the others of the batch are as they should be.
                    left.discard(box)
                    self._could_not(box, damaged)
                    continue
                if error is not None:
                    left.discard(box)
                    self._refuse(box, item, error)
        if not left:
            return
        process = self._processes.for_steps(assembly)
        loaded = await process.loaded()
        shapes = {each.name: each.shape for each in loaded.workflows}
        asks: list[_Asked] = []
        for box in batch:
            if box in left:
                ask = self._asked(box, shapes)
                if ask is not None:
                    asks.append(ask)
                    continue
                left.discard(box)
                await self._not_asked(box, loaded)
        if not asks:
            return
        async with contextlib.aclosing(process.steps(asks)) as coming:
            async for outcomes in coming:
                for asked, _ in outcomes:
                    left.discard(asked.box)
                await self._have(outcomes)
        # What nobody wanted any more has no outcome, and its run is gone.
        left.clear()

    async def _read(self, assembly: str, batch: Sequence[Mailbox], left: set[Mailbox]) -> None:
        """Read the runs that are not in memory; those that are over go, and too large ones wait."""
        unread = [box for box in batch if box.run is None]
        if not unread:
            return
        ids = [box.id for box in unread]
        found, is_all = await self._store.read(lambda db: rows.read_some(db, ids, BATCH_BYTES))
        for box in unread:
            if box.id not in found and not is_all and not box.is_gone:
                left.discard(box)
                self._lines[assembly].ready.append(box)
                continue
            box.run = found.get(box.id)
            box.is_kept = box.is_remembered = False
            item = box.head()
            if box.is_gone or item is None:
                continue  # `_asked` lets go of it
            if box.run is None:
                left.discard(box)
                self._refuse(box, item, _no_run(box))
            elif box.run.status != "live":
                left.discard(box)
                self._is_over(box, box.run)

    async def _why_not(self, assembly: str) -> EventRefused | None:
        """Return why this program does not load an Assembly; `None` when it does."""
        current = self._registry.current
        if current is not None and assembly == current.hash:
            return None
        kit = await self._store.read(
            lambda db: db.execute(
                "SELECT kit_version FROM assemblies WHERE hash = ?", (assembly,)
            ).fetchone()
        )
        if kit is not None and kit[0] == self._registry.kit_version:
            return None
        return EventRefused(
            409,
            f"the run holds Assembly {assembly[: names.SHORT_HASH]}, which this Orchestrator "
            f"({self._registry.kit_version}) does not load",
        )

    async def _not_asked(self, box: Mailbox, loaded: host_wire.Loaded) -> None:
        """Go on with a run that does not take its event now; one that does not fit is settled."""
        item, run = box.head(), box.run
        wrong = None
        if item is not None and run is not None and not box.is_gone:
            wrong = misfit(run.workflow, run.shape, loaded)
        if item is None or run is None or wrong is None:
            self._go_on(box)
            return
        now, status, reason = self._clock.now(), wrong.status, wrong.reason
        try:
            ended = await self._store.write(lambda db: rows.settle(db, run.id, status, reason, now))
        except StoreError as error:
            self._could_not(box, error)
            return
        if ended is None:
            self._moved_on(box, item)
        else:
            self._has_settled(ended)

    def _asked(self, box: Mailbox, shapes: Mapping[str, str]) -> _Asked | None:
        """Return the step to ask for; `None` when the run does not take one now.

        Args:
            box: the run's.
            shapes: the shape of each Workflow that the Assembly holds, by its name.
        """
        item, run = box.head(), box.run
        if item is None or run is None or box.is_gone or shapes.get(run.workflow) != run.shape:
            return None
        item.asked = True
        box.ask = ask = _Asked(
            text=(
                f'"op":"step","workflow":{quoted(run.workflow)},"run_id":"{run.id}",'
                f'"seq":{run.seq},"event":{item.text}}}'
            ),
            body=run.snapshot,
            is_kept=box.is_kept,
            box=box,
            item=item,
            run=run,
        )
        return ask

    async def _have(self, outcomes: Iterable[tuple[_Asked, Outcome]]) -> None:
        """Record what became of steps."""
        now = self._clock.now()
        made: list[_Made] = []
        for asked, outcome in outcomes:
            box, item = asked.box, asked.item
            if box.is_gone:
                continue
            decided = _decide(asked.run, outcome, now)
            if isinstance(decided, Transition):
                made.append((asked, decided))
            elif item.answer is not None:
                self._refuse(box, item, decided)
            else:
                await self._consume(asked)
        if made:
            await self._record(made)

    async def _record(self, made: Sequence[_Made]) -> None:
        """Commit steps together, then act on each, and answer."""
        now = self._clock.now()
        steps = [_recorded(asked, transition) for asked, transition in made]
        asked = made[0][0]
        try:
            await self._store.write(
                lambda db: stored.record(db, steps, TAKEN, now), alone=self._single > QUIET
            )
        except stored.Apart:
            async with asyncio.TaskGroup() as group:
                for each in made:
                    group.create_task(self._record([each]))
        except Stale:
            self._moved_on(asked.box, asked.item)
        except (Repeated, OtherRequest) as before:
            self._refuse(asked.box, asked.item, before)
        except Exception as error:
            for asked, _ in made:
                self._could_not(asked.box, error)
        else:
            plain = 0
            for asked, transition in made:
                box, item = asked.box, asked.item
                box.run = transition.run
                box.is_kept, box.is_remembered = True, False
                if transition.is_plain and self._feeds.is_empty:
                    plain += 1
                else:
                    item.context.run(self._act, transition)
                item.succeed()
                box.drop(item)
                self._go_on(box)
            if plain:
                self._metrics.step("live", plain)

    async def _consume(self, asked: _Asked) -> None:
        """Forget a task or a timer whose event the Machine has no use for."""
        box, item = asked.box, asked.item
        try:
            await self._store.write(
                lambda db: rows.consume(db, box.id, task=item.task, timer=item.timer)
            )
        except StoreError as error:
            self._could_not(box, error)
            return
        item.succeed()
        box.drop(item)
        self._go_on(box)


def share(runs: int) -> int:
    """Return how many runs a batch takes, so that all batches are of about one length.

    Args:
        runs: how many have an event that waits or is being taken.
    """
    return min(MOST_AT_ONCE, max(FEW, -(-runs // BATCHES)))


def _no_run(box: Mailbox) -> EventRefused:
    return EventRefused(404, f'no run "{box.id}"')


_Made = tuple[_Asked, Transition]


def _decide(run: Run, outcome: Outcome, now: int) -> Transition | EventRefused:
    """Return what an answer of the Assembly process makes of a run."""
    if isinstance(outcome, StruckOut):
        return fault(run, str(outcome))
    reply, body = outcome
    match reply:
        case host_wire.Stepped():
            return after_step(run, reply, body, now)
        case host_wire.Refused():
            return refused(reply)
        case host_wire.Broken():
            return fault(run, reply.error)
        case _:
            return fault(run, "the Assembly process answered something else")


def _recorded(asked: _Asked, transition: Transition) -> stored.Recorded:
    after, changes, _ = transition
    item = asked.item
    is_plain = after.status == "live" and after.gates == asked.run.gates
    return stored.Recorded(after, changes, is_plain, item.task, item.timer, item.once)
