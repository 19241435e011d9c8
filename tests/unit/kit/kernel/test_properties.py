"""The kernel's promises, on random Machines and random events.

A Machine is drawn as a tree of states (`random_machines`); events are drawn from what is live, from
what is not live any more, and from nothing at all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jr2 import BuiltMachine, EventRefused, host_wire
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
from jr2.kernel.keys import ROOT_PLACE, inside
from jr2.snapshot import Snapshot
from tests.unit.kit.kernel.random_machines import Ctx, build, specs

MACHINES = specs().map(build)


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


def is_whole(chart: Any, snapshot: Snapshot) -> bool:
    """Whether the active states of a Machine, and of its children, are a configuration."""
    nodes, active = chart.nodes, set(snapshot.entries)
    for index in [0, *active]:
        node = nodes[index]
        regions = {child for child in node.children if nodes[child].kind != "history"}
        if node.kind == "compound" and len(active & regions) != 1:
            return False
        if node.kind == "parallel" and not regions <= active:
            return False
        if node.kind == "history" or node.parent not in (None, 0, *active):
            return False
    return all(
        is_whole(inside(chart, key, ROOT_PLACE)[0], child)
        for key, child in snapshot.children.items()
    )


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


MANY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@MANY
@given(machine=MACHINES, data=st.data())
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
@given(machine=MACHINES, data=st.data())
def test_what_is_not_live_is_not_heard(
    machine: BuiltMachine[Any, Ctx, None], data: st.DataObject
) -> None:
    for before, event, after, ledger in walk(machine, data):
        if isinstance(event, GateEvent) or event.key in ledger.live:
            continue

        assert after.snapshot is before.snapshot
        assert after.commands == ()


@MANY
@given(machine=MACHINES, data=st.data())
def test_states_and_commands_add_up(
    machine: BuiltMachine[Any, Ctx, None], data: st.DataObject
) -> None:
    for _, event, after, ledger in walk(machine, data):
        if after.snapshot.fault is not None:
            assert "come to rest" in after.snapshot.fault or "failed" in after.snapshot.fault
        assert after.snapshot.status != "active" or is_whole(machine.chart, after.snapshot)
        entries = {
            f"{machine.chart.nodes[node].id}#{entry}"
            for node, entry in after.snapshot.entries.items()
        }
        assert {key.partition(":")[0] for key in after.snapshot.ended} <= entries
        if isinstance(event, TaskDone | TaskFailed | TimerFired) and event.key in ledger.live:
            # Nothing that has ended is stopped as well.
            assert all(getattr(one, "key", "") != event.key for one in after.commands)


@MANY
@given(machine=MACHINES, data=st.data())
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


@MANY
@given(machine=MACHINES, data=st.data())
def test_a_crash_at_any_point_leads_to_the_same_end(
    machine: BuiltMachine[Any, Ctx, None], data: st.DataObject
) -> None:
    steps = list(walk(machine, data))
    crashes = data.draw(st.sets(st.integers(0, max(len(steps) - 1, 0))), label="crashes")
    step = machine.start(None, "run-1")
    for number, (_, event, _, _) in enumerate(steps):
        snapshot = step.snapshot
        if number in crashes:
            # What was not committed is made again, from what was.
            machine.step(snapshot, event)
            snapshot = machine.load(machine.dump(snapshot))
        step = machine.step(snapshot, event)

    if steps:
        assert machine.dump(step.snapshot) == machine.dump(steps[-1][2].snapshot)
        assert step.commands == steps[-1][2].commands


@pytest.fixture(scope="module")
def other_process() -> Iterator[subprocess.Popen[str]]:
    """A process with hashes of its own that makes steps for us, by the sources of the kernel.

    Where the tests run on machine code (`scripts/with-compiled-kernel`), the two are compared.
    """
    here = Path(__file__).parents[4]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.unit.kit.kernel.random_machines"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=here,
        env={**environment, "PYTHONHASHSEED": "4711"},
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(spec=specs(wrong=True), data=st.data())
def test_another_process_makes_the_same_step(
    other_process: subprocess.Popen[str], spec: Any, data: st.DataObject
) -> None:
    machine = build(spec)
    for before, event, after, _ in walk(machine, data):
        stored = machine.dump(before.snapshot).decode()
        asked = json.dumps([spec, stored, event.model_dump(mode="json")])
        assert other_process.stdin is not None
        assert other_process.stdout is not None
        other_process.stdin.write(asked + "\n")
        other_process.stdin.flush()
        snapshot, said = json.loads(other_process.stdout.readline())

        assert snapshot.encode() == machine.dump(after.snapshot)
        assert said == [command.model_dump(mode="json") for command in after.commands]
