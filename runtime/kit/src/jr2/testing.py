"""Drive a Machine on a desk: no cluster, no model, no network, no waiting.

    from datetime import timedelta

    from jr2 import Context, ExternalEvent, Machine
    from jr2.testing import start


    class Approve(ExternalEvent):
        '''Ship it.'''


    class Ctx(Context):
        ticket: int


    m = Machine("review", context=Ctx, start=lambda i: Ctx(ticket=i.door["ticket"]))
    review, shipped, stale = m.state("review", initial=True), m.final("shipped"), m.final("stale")
    review.gate(meta=lambda c: {"ticket": c.ticket})
    review.on(Approve, to=shipped)
    review.after(timedelta(days=7), to=stale)
    machine = m.build()

    run = start(machine, {"ticket": 7})
    assert run.gates == ["review"]
    run.advance(timedelta(days=6))
    run.send(Approve())
    assert (run.status, run.value) == ("done", "shipped")

A run on the desk makes the steps that the Orchestrator makes, by the same kernel. After each step
its snapshot is written as JSON and read back, as it is in a cluster, so a test of a Machine is also
a test that its data survives. What a state starts is answered at once by a stand-in
(`machine.provide(…)`), or waits in `turns`, `effects` and `tasks` until the test answers it. The
clock is the test's: a timer fires when `advance` passes it. A Sandbox is there at once.

Source: spec/authoring.md §2.2 (the test seam), design §4.1.
"""

from __future__ import annotations

import asyncio
from asyncio import CancelledError
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel, JsonValue

from . import host_wire, kept, kernel, names
from .built import BuiltMachine
from .chart import Chart
from .events import AgentFault, Event, WorkspaceLost, event_name
from .kernel import Step
from .kernel.keys import BETWEEN, ROOT_PLACE, inside
from .parts.providing import run_effect, take_turn
from .parts.turns import Turn, decode_turn
from .run_data import Context
from .snapshot import Snapshot
from .tasks import reason

C = TypeVar("C", bound=Context)
D = TypeVar("D")
O = TypeVar("O")  # noqa: E741 - what a run ends with

RUN_ID: Final = "desk"
"""The id of a run on the desk, where the test gives none."""
MOST_ANSWERS: Final = 1000
"""How many answers of stand-ins one step of a test may lead to."""


class NotWaiting(LookupError):
    """The run waits for nothing of the kind that was answered; the text says what it waits for."""


class TooLarge(RuntimeError):
    """The run holds more than an Orchestrator keeps of one; the text has both numbers."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a state has started and nobody has answered.

    Args:
        name: the slot, with the actor path before it inside a composed Machine: `review/coder`.
        turn: of an Agent: the Turn.
        input: of an Effect or a task: its input, as JSON.
        picks: of an Agent: the events that the state takes from it, before guards.
        key: the same for nothing else in the run; it may be given where a name is, to tell apart what
            several states have started under one name.
    """

    name: str
    turn: Turn | None = None
    input: JsonValue = None
    picks: tuple[str, ...] = ()
    key: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class _Started:
    """A command that waits for its answer."""

    kind: str
    command: Any
    name: str
    """The slot, with the actor path before it."""


def start(
    machine: BuiltMachine[D, C, O],
    input: BaseModel | JsonValue | Mapping[str, Any] = None,
    *,
    run_id: str = RUN_ID,
) -> Run[C, O]:
    """Start a run on the desk, and answer what stand-ins can answer.

    Args:
        machine: what `build()`, `workspace()`, `customize()` or `provide()` returned.
        input: what its door takes, as a model or as JSON; `{}` when absent.
        run_id: what the Machine's `start` gets as the run's id.

    Raises:
        InputRefused: the input does not fit the door.
        TypeError: the Machine is not built.
    """
    if not isinstance(machine, BuiltMachine):
        raise TypeError(f"start() is given {machine!r}: give what .build() returned")
    given: Any = {} if input is None else input
    if isinstance(given, BaseModel):
        given = kept.sent(given)
    return Run(machine, machine.start(given, run_id))


class Run(Generic[C, O]):
    """One run on the desk; `start` makes it."""

    def __init__(self, machine: BuiltMachine[Any, C, O], first: Step) -> None:
        self._machine = machine
        self._snapshot: Snapshot = first.snapshot
        self._waiting: dict[str, _Started] = {}
        self._timers: dict[str, timedelta] = {}
        self._now = timedelta()
        self._emitted: list[tuple[str, JsonValue]] = []
        self._taken = 0
        self._take(first)
        self._answer_all()

    def __repr__(self) -> str:
        return f"<Run of {self._machine.id!r}: {self.status}, {self.value!r}>"

    # --- what can be seen -------------------------------------------------------------------------
    @property
    def status(self) -> str:
        """`active`, `done`, `error` or `cancelled`."""
        return self._snapshot.status

    @property
    def value(self) -> JsonValue:
        """The active states, as the API shows them: a name, or `{state: …}` around it."""
        return self._machine.view(self._snapshot).value

    @property
    def context(self) -> C:
        """The Machine's own data.

        Raises:
            LookupError: the start failed before there was any.
        """
        found: Any = self._snapshot.context
        if found is None:
            raise LookupError(f"the run has no context: {self.fault}")
        context: C = found
        return context

    @property
    def output(self) -> JsonValue:
        """What the run ended with, as JSON; `None` before its end."""
        return self._machine.view(self._snapshot).output

    @property
    def fault(self) -> str | None:
        """Why the run ended with an error."""
        return self._snapshot.fault

    @property
    def gates(self) -> list[str]:
        """The ids of the open Gates."""
        return [gate.gate for gate in self._machine.view(self._snapshot).gates]

    @property
    def children(self) -> list[JsonValue]:
        """The composed Machines that run, as the API shows them, each with its context."""
        return self._machine.view(self._snapshot).children

    @property
    def turns(self) -> list[Asked]:
        """The Turns that no stand-in took."""
        return [
            Asked(
                one.name,
                turn=decode_turn(one.command.input),
                picks=tuple(one.command.picks),
                key=one.command.key,
            )
            for one in self._of("turn")
        ]

    @property
    def effects(self) -> list[Asked]:
        """The Effects that no stand-in ran."""
        return [
            Asked(one.name, input=one.command.input, key=one.command.key)
            for one in self._of("effect")
        ]

    @property
    def tasks(self) -> list[Asked]:
        """The tasks that have not ended."""
        return [
            Asked(one.name, input=one.command.input, key=one.command.key)
            for one in self._of("task")
        ]

    @property
    def timers(self) -> list[timedelta]:
        """How long each armed timer has to go, the next one first."""
        return sorted(due - self._now for due in self._timers.values())

    @property
    def emitted(self) -> list[tuple[str, JsonValue]]:
        """What the Machine has told watchers so far: the name and the payload of each message."""
        return list(self._emitted)

    def meta(self, gate: str | None = None) -> JsonValue:
        """Return the `meta` of an open Gate.

        Args:
            gate: its id; needed when several are open.

        Raises:
            NotWaiting: no such Gate is open.
        """
        wanted = self._gate(gate)
        return next(
            each.meta for each in self._machine.view(self._snapshot).gates if each.gate == wanted
        )

    def allowed(self, agent: str | None = None) -> list[str]:
        """Return what an Agent may pick now: the picks of its state, narrowed by their guards.

        Raises:
            NotWaiting: no such Turn waits.
        """
        key = self._key("turn", agent)
        return list(kernel.allowed(self._chart, self._snapshot, key))

    # --- what happens to the run ------------------------------------------------------------------
    def send(self, event: Event, *, gate: str | None = None) -> None:
        """Send an event through a Gate.

        Args:
            event: it is sent as JSON and parsed again.
            gate: the id of the Gate; needed when several are open.

        Raises:
            NotWaiting: no such Gate is open.
            EventRefused: the Gate does not accept the event.
            TypeError: it is no event, but its class or something else.
        """
        name, payload = _told(event)
        self._step(host_wire.GateEvent(gate=self._gate(gate), name=name, payload=payload))

    def pick(self, event: Event, *, agent: str | None = None) -> host_wire.PickReceipt:
        """Have an Agent pick an event, and return what the Agent is told of it.

        Args:
            event: the pick.
            agent: the name of the Turn as in `turns`; needed when several wait.

        Raises:
            NotWaiting: no such Turn waits.
            EventRefused: the state does not take the event.
            TypeError: it is no event, but its class or something else.
        """
        return self._pick(self._key("turn", agent), event)

    def fail_turn(self, reason: str, *, agent: str | None = None) -> None:
        """End a Turn with `AgentFault`.

        Raises:
            NotWaiting: no such Turn waits.
        """
        key = self._key("turn", agent)
        self._step(host_wire.TurnFaulted(key=key, instance_id=f"desk/{key}", reason=reason))

    def effect_returns(self, result: BaseModel, *, effect: str | None = None) -> None:
        """Answer an Effect with its result.

        Raises:
            NotWaiting: no such Effect waits.
            TypeError: it is no result of this kind of Effect.
        """
        key = self._key("effect", effect)
        started = self._waiting[key]
        machine = self._machine.at(started.command.machine)
        assert machine is not None
        gives = machine.effects[started.command.slot].gives
        if not isinstance(result, gives):
            raise TypeError(
                f'Effect "{started.name}" returns a {gives.__name__}, and is answered {result!r}'
            )
        self._step(host_wire.TaskDone(key=key, output=result.model_dump(mode="json")))

    def effect_fails(self, reason: str, *, effect: str | None = None) -> None:
        """Say that an Effect could not be run.

        Raises:
            NotWaiting: no such Effect waits.
        """
        self._step(host_wire.TaskFailed(key=self._key("effect", effect), reason=reason))

    def run_task(self, task: str | None = None) -> None:
        """Run a task that waits: the author's own function, or its stand-in.

        Raises:
            NotWaiting: no such task waits.
        """
        key = self._key("task", task)
        command = self._waiting[key].command
        machine = self._machine.at(command.machine)
        assert machine is not None
        self._step(_run_task(machine, command))

    def task_returns(self, output: Any, *, task: str | None = None) -> None:
        """Answer a task with what its function would return.

        Args:
            output: the value itself, a model or JSON; it is read by the type that the function
                declares.
            task: the name of the task as in `tasks`; needed when several wait.

        Raises:
            NotWaiting: no such task waits.
            TypeError: the output has no JSON form.
        """
        key = self._key("task", task)
        started = self._waiting[key].command
        machine = self._machine.at(started.machine)
        assert machine is not None
        try:
            told = machine.tasks[started.slot].answered(output)
        except ValueError as bad:
            raise TypeError(
                f'task "{self._waiting[key].name}" is answered {output!r}, which has no JSON form'
            ) from bad
        self._step(host_wire.TaskDone(key=key, output=told))

    def task_fails(self, reason: str, *, task: str | None = None) -> None:
        """Say that a task raised.

        Raises:
            NotWaiting: no such task waits.
        """
        self._step(host_wire.TaskFailed(key=self._key("task", task), reason=reason))

    def lose_workspace(self, reason: str = "the node is gone") -> None:
        """Have the pod of the Workspace vanish: the body hears `WorkspaceLost`.

        Raises:
            NotWaiting: no body of a Workspace runs.
        """
        chain = _body(self._machine, self._snapshot)
        if chain is None:
            raise NotWaiting("no body of a Workspace runs")
        name = event_name(WorkspaceLost)
        self._taken = 0
        self._take(
            kernel.deliver(self._chart, self._snapshot, name, WorkspaceLost(reason=reason), chain)
        )
        self._answer_all()

    def advance(self, by: timedelta) -> None:
        """Let time pass; the timers that come due fire in their order, each at its own time.

        Raises:
            ValueError: the time is negative.
        """
        if by < timedelta(0):
            raise ValueError(f"the clock does not go back: advance({by!r})")
        end = self._now + by
        while self._timers:
            key, due = min(self._timers.items(), key=lambda armed: armed[1])
            if due > end:
                break
            self._now = max(self._now, due)
            del self._timers[key]
            self._step(host_wire.TimerFired(key=key))
        self._now = end

    def cancel(self) -> None:
        """End the run where it stands, as `jr2 send --event CANCEL` does."""
        self._take(kernel.cancel(self._chart, self._snapshot))

    # --- the steps --------------------------------------------------------------------------------
    @property
    def _chart(self) -> Chart:
        return self._machine.chart

    def _of(self, kind: str) -> list[_Started]:
        return [one for one in self._waiting.values() if one.kind == kind]

    def _key(self, kind: str, name: str | None) -> str:
        """Return the key of the one thing of a kind that waits under a name, or a key."""
        found = [one for one in self._of(kind) if name in (None, one.name, one.command.key)]
        if len(found) == 1:
            key: str = found[0].command.key
            return key
        waiting = ", ".join(one.name for one in self._of(kind)) or "none"
        what = f"no {kind}" if not found else f"more than one {kind}"
        called = "" if name is None else f' "{name}"'
        apart = " — give the key of one" if name is not None and found else ""
        raise NotWaiting(f"{what}{called} waits in {self.value!r} (waiting: {waiting}){apart}")

    def _gate(self, gate: str | None) -> str:
        if gate in self.gates:
            return str(gate)
        if gate is None and len(self.gates) == 1:
            return self.gates[0]
        opened = ", ".join(self.gates) or "none"
        what = "name one of the Gates" if gate is None and self.gates else "no such Gate is open"
        raise NotWaiting(f"{what} in {self.value!r} (open: {opened})")

    def _step(self, event: host_wire.StepEvent) -> Step:
        self._taken = 0
        made = self._machine.step(self._snapshot, event)
        if isinstance(event, host_wire.TaskDone | host_wire.TaskFailed | host_wire.TurnFaulted):
            self._waiting.pop(event.key, None)
        self._take(made)
        self._answer_all()
        return made

    def _pick(self, key: str, event: Event) -> host_wire.PickReceipt:
        name, payload = _told(event)
        made = self._step(host_wire.PickEvent(key=key, name=name, payload=payload))
        assert made.receipt is not None  # every pick that is not refused has one
        return made.receipt

    def _take(self, made: Step) -> None:
        """Keep a step as a cluster keeps it: the snapshot as JSON, then the commands."""
        written = self._machine.dump(made.snapshot)
        if len(written) > names.MAX_SNAPSHOT:
            raise TooLarge(
                f"the run is {len(written)} bytes, and no Orchestrator keeps more than "
                f"{names.MAX_SNAPSHOT}: it would end there with a fault"
            )
        self._snapshot = self._machine.load(written)
        for command in made.commands:
            if isinstance(command, host_wire.ArmTimer):
                self._timers[command.key] = _later(self._now, command.delay)
            elif isinstance(command, host_wire.DisarmTimer):
                self._timers.pop(command.key, None)
            elif isinstance(command, host_wire.Emit):
                self._emitted.append((command.type, command.payload))
            elif command.kind in _STARTS:
                name = _name(self._chart, command)
                self._waiting[command.key] = _Started(_STARTS[command.kind], command, name)
            else:
                self._waiting.pop(command.key, None)
        if self.status != "active":
            self._waiting.clear()
            self._timers.clear()

    def _answer_all(self) -> None:
        """Have the stand-ins answer until none of them has anything to answer."""
        while (answer := self._next_answer()) is not None:
            self._taken += 1
            if self._taken > MOST_ANSWERS:
                raise RuntimeError(
                    f"the stand-ins do not come to rest: more than {MOST_ANSWERS} answers in one "
                    f"step; the run is in {self.value!r}"
                )
            event = answer()
            made = self._machine.step(self._snapshot, event)
            self._waiting.pop(event.key, None)
            still = kernel.is_live(self._chart, made.snapshot, event.key)
            if isinstance(event, host_wire.PickEvent) and still:
                raise RuntimeError(
                    f'the stand-in of an Agent picked "{event.name}" in {self.value!r}, and the '
                    "state was not left; what it may pick: "
                    f"{', '.join(made.receipt.allowed if made.receipt else ()) or 'nothing'}"
                )
            self._take(made)

    def _next_answer(self) -> Callable[[], Any] | None:
        """Return what makes the next answer of a stand-in, or of the Sandbox, which always is one."""
        for key, one in self._waiting.items():
            machine = self._machine.at(one.command.machine)
            assert machine is not None
            if one.kind == "sandbox":
                return lambda key=key: host_wire.TaskDone(key=key)  # type: ignore[misc]
            if one.kind == "turn" and one.command.slot in machine.provided.agents:
                return lambda machine=machine, one=one: _taken_turn(machine, one.command)  # type: ignore[misc]
            if one.kind == "task" and one.command.slot in machine.provided.tasks:
                return lambda machine=machine, one=one: _run_task(machine, one.command)  # type: ignore[misc]
            if one.kind == "effect" and one.command.slot in machine.provided.effects:
                return lambda machine=machine, one=one: _run_effect(machine, one.command)  # type: ignore[misc]
        return None


_STARTS: Final = {
    "start_task": "task",
    "start_turn": "turn",
    "run_effect": "effect",
    "start_sandbox": "sandbox",
}


def _run_task(
    machine: BuiltMachine[Any, Any, Any], command: host_wire.StartTask
) -> host_wire.TaskDone | host_wire.TaskFailed:
    async def run() -> JsonValue:
        return await machine.run_task(command.slot, command.input)

    try:
        # In a thread of its own, for the test may have a running loop.
        with ThreadPoolExecutor(1) as thread:
            output = thread.submit(lambda: asyncio.run(run())).result()
    except (Exception, SystemExit, CancelledError) as error:
        return host_wire.TaskFailed(key=command.key, reason=reason(error))
    return host_wire.TaskDone(key=command.key, output=output)


def _taken_turn(
    machine: BuiltMachine[Any, Any, Any], command: host_wire.StartTurn
) -> host_wire.PickEvent | host_wire.TurnFaulted:
    picked = take_turn(machine, command.slot, command.input)
    if isinstance(picked, AgentFault):
        return host_wire.TurnFaulted(
            key=command.key, instance_id=picked.instance_id, reason=picked.reason
        )
    name, payload = _told(picked)
    return host_wire.PickEvent(key=command.key, name=name, payload=payload)


def _run_effect(
    machine: BuiltMachine[Any, Any, Any], command: host_wire.RunEffect
) -> host_wire.TaskDone | host_wire.TaskFailed:
    try:
        output = run_effect(machine, command.slot, command.input)
    except TypeError:
        raise  # the stand-in is wrong, and not the Effect
    except Exception as error:
        return host_wire.TaskFailed(key=command.key, reason=reason(error))
    return host_wire.TaskDone(key=command.key, output=output)


def _later(now: timedelta, seconds: float) -> timedelta:
    """Return when a timer is due; one that the clock cannot reach is due at its end."""
    try:
        return now + timedelta(seconds=seconds)
    except OverflowError:
        return timedelta.max


def _told(event: Event) -> tuple[str, Any]:
    """Return the name and the payload of an event, as they are sent."""
    given: object = event
    if not isinstance(given, Event):
        called = given.__name__ if isinstance(given, type) else "Approve"
        raise TypeError(f"{given!r} is no event: give an object of its class, as in {called}(…)")
    try:
        return event_name(type(given)), kept.sent(given)
    except ValueError as bad:
        raise TypeError(f"the event {given!r} has no JSON form") from bad


def _name(chart: Chart, command: Any) -> str:
    """Return the slot of what a command starts, with the actor path before it."""
    place = ROOT_PLACE
    for child in command.key.split(BETWEEN)[:-1]:
        chart, place, _ = inside(chart, child, place)
    return "/".join((*place.actors, command.slot))


def _body(machine: BuiltMachine[Any, Any, Any], snapshot: Snapshot) -> list[str] | None:
    """Return the way of keys to the innermost body of a Workspace that runs."""
    for key, child in snapshot.children.items():
        slot = inside(machine.chart, key, ROOT_PLACE)[2]
        found = _body(machine.children[slot], child)
        if found is not None:
            return [key, *found]
        if machine.sandbox is not None:
            return [key]
    return None


__all__ = ["Asked", "NotWaiting", "Run", "TooLarge", "start"]
