"""Actions: what is assigned, emitted and raised, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from jr2 import BuiltMachine, Context, ExternalEvent, InternalEvent, Machine, Message, kernel
from jr2.chart import Action, Raised
from tests.unit.kit.kernel.runs import Run


class Ctx(Context):
    log: tuple[str, ...] = ()

    def wrote(self, line: str) -> Ctx:
        return self.set(log=(*self.log, line))


class Go(ExternalEvent):
    to: str = ""


class Ping(InternalEvent):
    n: int = 1


class Told(Message):
    lines: int


def order() -> BuiltMachine[Any, Ctx, None]:
    m = Machine("order", context=Ctx, start=lambda _: Ctx())
    one, two = m.state("one", initial=True), m.state("two")
    inner = one.state("inner", initial=True)
    deep = two.state("deep", initial=True)
    end = two.final("end")
    for name, state in {"one": one, "inner": inner, "two": two, "deep": deep}.items():
        state.entry(assign=log(f"in {name}")).exit(assign=log(f"out {name}"))
    one.gate(gate="one")
    one.on(
        Go,
        to=two,
        assign=lambda c, e: c.wrote("go"),
        emit=lambda c, e: Told(lines=len(c.log)),
        raise_=lambda c, e: Ping(n=2),
    )
    two.entry(emit=lambda c: Told(lines=len(c.log))).entry(raise_=lambda c: Ping(n=3))
    m.on(Ping, assign=lambda c, e: c.wrote(f"ping {e.n}"))
    deep.on(Ping, guard=lambda _, e: e.n == 3, to=end)
    end.entry(assign=lambda c: c.wrote("in end"), emit=lambda c: Told(lines=len(c.log)))
    two.done(assign=lambda c, _: c.wrote("done"))
    return m.build()


def log(line: str) -> Any:
    return lambda c: c.wrote(line)


def test_states_are_left_innermost_first_and_entered_outermost_first() -> None:
    run = Run(order())
    assert run.context["log"] == ["in one", "in inner"]

    run.gate("one", "go")

    assert run.context["log"][2:] == [
        "out inner",
        "out one",
        "go",
        "in two",
        "in deep",
        "ping 2",
        "out deep",
        "in end",
        "done",
    ]
    assert [one.model_dump()["payload"] for one in run.step.commands] == [
        {"lines": 5},
        {"lines": 6},
        {"lines": 10},
    ]


def test_a_raised_event_that_nobody_takes_is_gone() -> None:
    m = Machine("deaf", context=Ctx, start=lambda _: Ctx())
    m.state("one", initial=True).gate().on(Go, raise_=lambda c, e: Ping())
    run = Run(m.build())

    assert run.gate("one", "go").value == "one"


def test_an_always_without_a_target_runs_until_its_guard_is_false() -> None:
    m = Machine("counts", context=Ctx, start=lambda _: Ctx())
    one = m.state("one", initial=True)
    one.always(guard=lambda c: len(c.log) < 3, assign=lambda c: c.wrote("x"))

    assert Run(m.build()).context["log"] == ["x", "x", "x"]


def test_internal_events_are_in_no_gate_and_not_in_the_vocabulary() -> None:
    machine = order()

    assert [event.__name__ for event in machine.chart.events] == ["Go"]
    assert [gate.accepts[0]["name"] for gate in Run(machine).view.gates] == ["go"]


@pytest.mark.parametrize(
    ("actions", "fault"),
    [
        (
            {"entry": {"assign": lambda c: None}},
            'the assign of state "two" returned NoneType, not Ctx',
        ),
        ({"exit": {"raise_": lambda c: Go}}, 'the raise of state "one" returned'),
        (
            {"exit": {"emit": lambda c: 1 // 0}},
            'the emit of state "one" raised ZeroDivisionError: integer division or modulo by zero',
        ),
    ],
)
def test_an_action_that_fails_is_a_fault_that_names_the_state(actions: Any, fault: str) -> None:
    m = Machine("fails", context=Ctx, start=lambda _: Ctx())
    one, two = m.state("one", initial=True), m.state("two")
    one.gate().on(Go, to=two)
    two.entry(**actions.get("entry", {}))
    one.exit(**actions.get("exit", {}))

    run = Run(m.build()).gate("one", "go")

    assert run.view.fault is not None
    assert run.view.fault.startswith(fault)
    assert run.value == "one"


def test_the_fault_of_an_eventless_transition_says_so() -> None:
    m = Machine("fails", context=Ctx, start=lambda _: Ctx())
    m.state("one", initial=True).always(guard=lambda c: bool(1 // 0))

    assert str(Run(m.build()).view.fault).startswith(
        'the guard of state "one" (eventless) raised ZeroDivisionError'
    )


def test_the_root_is_named_as_the_root() -> None:
    m = Machine("fails", context=Ctx, start=lambda _: Ctx())
    m.state("one", initial=True).gate()
    m.on(Go, assign=lambda c, e: c.wrote(str(1 // 0)))

    assert str(Run(m.build()).gate("one", "go").view.fault).startswith(
        'the assign of the root on "go" raised ZeroDivisionError'
    )


def test_an_exit_of_the_last_final_state_happens_at_the_end() -> None:
    machine = order()
    node = machine.chart.find("two.end")
    assert node is not None

    m = Machine("ends", context=Ctx, start=lambda _: Ctx())
    one = m.state("one", initial=True)
    end = m.final("end")
    one.always(to=end)
    end._draft.exit += (Action("emit", lambda c, _: Told(lines=0)),)

    assert Run(m.build()).said == ["emit told"]


def test_an_event_may_be_raised_and_delivered_by_its_name() -> None:
    m = Machine("named", context=Ctx, start=lambda _: Ctx())
    one, two = m.state("one", initial=True), m.state("two")
    one.gate().on(Go, raise_=lambda c, e: Raised("done.state.one"))  # type: ignore[arg-type, return-value]
    one.final("end")
    one.state("waits", initial=True)
    one.done(to=two)
    machine = m.build()

    raised = Run(machine).gate("one", "go")
    assert (raised.view.status, raised.value) == ("active", "two")
    snapshot = Run(machine).step.snapshot
    assert kernel.deliver(machine.chart, snapshot, "nothing").snapshot is snapshot
    gone = kernel.deliver(machine.chart, snapshot, "go", Go())
    assert machine.view(gone.snapshot).value == "two"
    over = machine.fault(snapshot, "over").snapshot
    assert kernel.deliver(machine.chart, over, "go", Go()).snapshot is over


def test_the_text_of_an_error_is_cut_so_that_the_fault_says_it() -> None:
    """Were it kept whole, the run would end for the size of its snapshot instead."""
    m = Machine("shout", context=Ctx, start=lambda _: Ctx())
    m.state("one", initial=True).gate()

    def shout(c: Ctx) -> Ctx:
        raise ValueError("x" * 2_000_000)

    m.on(Go, assign=lambda c, e: shout(c))
    fault = str(Run(m.build()).gate("one", "go").view.fault)
    assert fault.startswith('the assign of the root on "go" raised ValueError: xxx')
    assert fault.endswith("x… (2000012 characters)")
    assert len(fault) < 5_000
