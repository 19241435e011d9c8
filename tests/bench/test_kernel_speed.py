"""How fast a step is on a chart of ten states, beside what any step of a durable Machine must do.

The floor reads the event by its model, makes the new context, writes it as JSON and reads it back:
the parts that a restart depends on. What the step takes beyond is the statechart itself. Processor
time is compared, the best of several turns, so that a busy machine counts little; steps a second
are printed, and never asserted.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from jr2 import BuiltMachine, Context, ExternalEvent, Machine, accepted
from jr2.host_wire import GateEvent
from jr2.snapshot import read_context, write_context

STEPS = 3_000
TURNS = 7
MOST = 8.0
"""How many times the floor a step may take."""


class Go(ExternalEvent):
    n: int = 0


class Ctx(Context):
    n: int = 0
    notes: str = ""


def ten_states(parallel: bool) -> BuiltMachine[Any, Ctx, None]:
    """Three groups of two states and an end; or two regions that go round, in a parallel state."""
    m = Machine("ten", context=Ctx, start=lambda _: Ctx())
    around = m.parallel("around", initial=True) if parallel else m
    groups = [around.state(f"g{n}", initial=n == 0 and not parallel) for n in range(3)]
    for number, group in enumerate(groups):
        first, second = group.state("first", initial=True), group.state("second")
        first.gate(gate=f"gate{number}").on(Go, to=second, assign=lambda c, e: c.set(n=c.n + 1))
        second.gate(gate=f"gate{number}b").on(Go, to=first)
    if not parallel:
        for number, group in enumerate(groups):
            group.on(Go, to=groups[(number + 1) % 3])
        m.final("end")
    return m.build()


def steps(machine: BuiltMachine[Any, Ctx, None]) -> float:
    """Return the processor time of one step, in seconds."""
    snapshot = machine.start(None, "run-1").snapshot
    begun = time.process_time()
    for _ in range(STEPS):
        gate = next(iter(snapshot.gates.values())).gate
        snapshot = machine.step(snapshot, GateEvent(gate=gate, name="go", payload={})).snapshot
    spent = time.process_time() - begun
    assert snapshot.status == "active"
    return spent / STEPS


def floor(machine: BuiltMachine[Any, Ctx, None]) -> float:
    """Return the processor time of what cannot be saved, in seconds."""
    context = Ctx()
    begun = time.process_time()
    for _ in range(STEPS):
        event = GateEvent(gate="gate", name="go", payload={})
        accepted.parse(Go, event.payload)
        written = write_context(context.set(n=context.n + 1))
        context = read_context(machine.chart, written)  # type: ignore[assignment]
    return (time.process_time() - begun) / STEPS


@pytest.mark.parametrize("parallel", [False, True], ids=["nested", "parallel"])
def test_a_step_is_a_few_times_what_cannot_be_saved(
    parallel: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = ten_states(parallel)
    assert len(machine.chart.nodes) == 11

    # Turn by turn, so that a processor that is slower for a while is so for both.
    turns = [(steps(machine), floor(machine)) for _ in range(TURNS)]
    step, least = min(turn[0] for turn in turns), min(turn[1] for turn in turns)

    with capsys.disabled():
        kind = "parallel" if parallel else "nested"
        print(
            f"\nkernel, ten states, {kind}: {1 / step:,.0f} steps/s; "
            f"{step / least:.1f} × the floor of {least * 1e6:.1f} µs"
        )
    assert step <= MOST * least
