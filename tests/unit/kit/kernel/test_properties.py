"""The kernel's promises, on random Machines and random events.

A Machine is drawn as a tree of states with transitions, tasks, timers and Gates; events are drawn
from what is live, from what is not live any more, and from nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from jr2 import BuiltMachine, Context, Event, EventRefused, Machine, host_wire
from jr2.host_wire import (
    ArmTimer,
    DisarmTimer,
    GateEvent,
    StartTask,
    StopTask,
    TaskDone,
    TaskFailed,
    TimerFired,
)
from jr2.kernel import Step
from jr2.machine import State


class Red(Event):
    n: int = 0


class Green(Event):
    n: int = 0


class Ctx(Context):
    n: int = 0


async def work(n: int) -> int:
    return n


EVENTS = (Red, Green)


@st.composite
def machines(draw: st.DrawFn) -> BuiltMachine[Any, Ctx, None]:
    m = Machine("random", context=Ctx, start=lambda _: Ctx())
    task = m.task("work", work)
    states: list[State[Ctx]] = []

    def grow(parent: Any, depth: int) -> None:
        for number in range(draw(st.integers(1, 3))):
            state = parent.state(f"s{number}", initial=number == 0)
            states.append(state)
            if depth < 2 and draw(st.booleans()):
                grow(state, depth + 1)
                if draw(st.booleans()):
                    targets.append(state.final("end"))
                    completed.append(state)

    targets: list[Any] = []
    completed: list[State[Ctx]] = []
    grow(m, 0)
    targets += states
    if draw(st.booleans()):
        targets.append(m.final("end"))

    def route() -> dict[str, Any]:
        bar = draw(st.integers(0, 4))
        return {
            "to": draw(st.sampled_from([None, *targets])),
            "guard": lambda c, *_: c.n % 5 >= bar,
            "assign": draw(st.sampled_from([None, lambda c, *_: c.set(n=c.n + 1)])),
        }

    for state in completed:
        state.done(**route())
    for state in states:
        for _ in range(draw(st.integers(0, 2))):
            state.on(draw(st.sampled_from(EVENTS)), **route(), internal=draw(st.booleans()))
        for _ in range(draw(st.integers(0, 2))):
            running = state.run(task, lambda c: c.n).done(**route())
            if draw(st.booleans()):
                running.failed(**route())
        for _ in range(draw(st.integers(0, 2))):
            state.after(timedelta(seconds=draw(st.integers(0, 9))), **route())
        if draw(st.integers(0, 4)) == 0:
            state.always(**(route() | {"to": draw(st.sampled_from(targets))}))
        state.on(Red, assign=lambda c, e: c.set(n=c.n + e.n))
        if draw(st.booleans()):
            state.gate()
    return m.build()


@dataclass
class Ledger:
    """What an honest Orchestrator would have running."""

    live: dict[str, str] = field(default_factory=dict)
    ever: set[str] = field(default_factory=set)

    def act(self, step: Step) -> None:
        for command in step.commands:
            if isinstance(command, StartTask | ArmTimer):
                assert command.key not in self.ever, "a key comes once in a run"
                self.ever.add(command.key)
                self.live[command.key] = command.kind
            elif isinstance(command, StopTask):
                assert self.live.pop(command.key) == "start_task"
            elif isinstance(command, DisarmTimer):
                assert self.live.pop(command.key) == "arm_timer"
        if step.snapshot.status != "active":
            assert not self.live, "nothing of a settled run is live"


def events(ledger: Ledger, view: host_wire.View, draw: Any) -> host_wire.StepEvent:
    """Draw one event: for something live, for something that was, or for a Gate."""
    gates = [gate.gate for gate in view.gates] + ["nowhere"]
    key = draw(st.sampled_from([*sorted(ledger.ever), "no#1:such.key"]))
    kind = draw(st.sampled_from(["gate", "live", "any"]))
    if kind == "live" and ledger.live:
        key = draw(st.sampled_from(sorted(ledger.live)))
    if kind == "gate":
        name = draw(st.sampled_from(["red", "green"]))
        payload = {"n": draw(st.integers(0, 3))}
        return GateEvent(gate=draw(st.sampled_from(gates)), name=name, payload=payload)
    if ":task." in key:
        if draw(st.booleans()):
            return TaskDone(key=key, output=1)
        return TaskFailed(key=key, reason="RuntimeError: red")
    return TimerFired(key=key)


def is_whole(machine: BuiltMachine[Any, Ctx, None], step: Step) -> bool:
    """Whether each active compound state has exactly one active child."""
    nodes, active = machine.chart.nodes, set(step.snapshot.entries)
    for index in [0, *active]:
        if nodes[index].children and len(active & set(nodes[index].children)) != 1:
            return False
        parent = nodes[index].parent
        if parent not in (None, 0) and parent not in active:
            return False
    return True


def walk(
    machine: BuiltMachine[Any, Ctx, None], data: st.DataObject
) -> Iterator[tuple[Step, host_wire.StepEvent, Step, Ledger]]:
    """Yield each step of one run: before, event, after, and the ledger before the event."""
    ledger = Ledger()
    step = machine.start(None, "run-1")
    ledger.act(step)
    for _ in range(data.draw(st.integers(1, 12), label="length")):
        event = events(ledger, machine.view(step.snapshot), data.draw)
        try:
            after = machine.step(step.snapshot, event)
        except EventRefused:
            continue
        yield step, event, after, ledger
        if isinstance(event, TaskDone | TaskFailed | TimerFired):
            ledger.live.pop(event.key, None)
        ledger.act(after)
        step = after


MANY = settings(max_examples=40, deadline=None)


@MANY
@given(machine=machines(), data=st.data())
def test_a_step_is_the_same_each_time_and_after_a_restart(
    machine: BuiltMachine[Any, Ctx, None], data: st.DataObject
) -> None:
    for before, event, after, _ in walk(machine, data):
        again = machine.step(before.snapshot, event)
        restored = machine.step(machine.load(machine.dump(before.snapshot)), event)

        assert again == after
        assert restored == after
        assert machine.dump(restored.snapshot) == machine.dump(after.snapshot)
        assert machine.view(restored.snapshot) == machine.view(after.snapshot)


@MANY
@given(machine=machines(), data=st.data())
def test_what_is_not_live_is_not_heard(
    machine: BuiltMachine[Any, Ctx, None], data: st.DataObject
) -> None:
    for before, event, after, ledger in walk(machine, data):
        if isinstance(event, GateEvent) or event.key in ledger.live:
            continue

        assert after.snapshot is before.snapshot
        assert after.commands == ()


@MANY
@given(machine=machines(), data=st.data())
def test_states_and_commands_add_up(
    machine: BuiltMachine[Any, Ctx, None], data: st.DataObject
) -> None:
    for _, event, after, ledger in walk(machine, data):
        if after.snapshot.fault is not None:
            assert "come to rest" in after.snapshot.fault or "failed" in after.snapshot.fault
        assert after.snapshot.status != "active" or is_whole(machine, after)
        entries = {
            f"{machine.chart.nodes[node].id}#{entry}"
            for node, entry in after.snapshot.entries.items()
        }
        assert {key.partition(":")[0] for key in after.snapshot.ended} <= entries
        if isinstance(event, TaskDone | TaskFailed | TimerFired) and event.key in ledger.live:
            # Nothing that has ended is stopped as well.
            assert all(getattr(one, "key", "") != event.key for one in after.commands)


@MANY
@given(machine=machines(), data=st.data())
def test_each_entry_into_a_gate_has_an_id_of_its_own(
    machine: BuiltMachine[Any, Ctx, None], data: st.DataObject
) -> None:
    seen: dict[str, str] = {}
    closed: set[str] = set()
    for before, _, after, _ in walk(machine, data):
        was = {gate.id: gate.gate for gate in machine.view(before.snapshot).gates}
        now = {gate.id: gate.gate for gate in machine.view(after.snapshot).gates}
        closed |= was.keys() - now.keys()

        assert not closed & now.keys()
        for entry, gate in now.items():
            assert seen.setdefault(entry, gate) == gate
