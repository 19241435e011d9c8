"""Parallel states: regions that go on by themselves, conflicts, and completion."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from jr2 import BuiltMachine, Context, ExternalEvent, InternalEvent, Machine
from tests.unit.kit.kernel.runs import Run


class Ctx(Context):
    log: tuple[str, ...] = ()

    def wrote(self, line: str) -> Ctx:
        return self.set(log=(*self.log, line))


class Go(ExternalEvent):
    pass


class Stop(ExternalEvent):
    pass


class Next(InternalEvent):
    pass


async def work() -> int:
    return 1


def checks() -> BuiltMachine[Any, Ctx, None]:
    m = Machine("checks", context=Ctx, start=lambda _: Ctx())
    both = m.parallel("both", initial=True)
    lint, tests = both.state("lint"), both.state("tests")
    linting, red = lint.state("linting", initial=True), lint.state("red")
    testing = tests.state("testing", initial=True)
    ended = m.state("ended")

    task = m.task("work", work)
    linting.run(task).done(to=lint.final("linted")).failed(to=red)
    red.gate().on(Go, to=linting)
    testing.gate().on(Go, to=tests.final("tested"))
    testing.after(timedelta(minutes=1), to=ended)
    lint.done(assign=lambda c, _: c.wrote("lint"))
    tests.done(assign=lambda c, _: c.wrote("tests"))
    both.done(to=m.final("good"), assign=lambda c, _: c.wrote("both"))
    both.on(Stop, to=ended)
    return m.build()


def test_every_region_is_entered_and_goes_on_by_itself() -> None:
    run = Run(checks())

    assert run.value == {"both": {"lint": "linting", "tests": "testing"}}
    assert run.said == [
        "start_task both.lint.linting#3:task.work",
        "arm_timer both.tests.testing#5:after.0",
    ]

    run.done("both.lint.linting#3:task.work", 1)

    assert run.value == {"both": {"lint": "linted", "tests": "testing"}}
    assert run.context["log"] == ["lint"]
    assert run.said == []


def test_a_parallel_state_is_done_when_each_region_is() -> None:
    run = Run(checks()).done("both.lint.linting#3:task.work", 1)

    run.gate("both.tests.testing", "go")

    assert (run.view.status, run.value) == ("done", "good")
    assert run.context["log"] == ["lint", "tests", "both"]
    assert run.said == ["disarm_timer both.tests.testing#5:after.0"]


def test_an_event_for_a_gate_is_heard_by_its_region_alone() -> None:
    run = Run(checks()).failed("both.lint.linting#3:task.work")
    assert sorted(gate.gate for gate in run.view.gates) == ["both.lint.red", "both.tests.testing"]

    run.gate("both.lint.red", "go")

    assert run.value == {"both": {"lint": "linting", "tests": "testing"}}
    assert [gate.gate for gate in run.view.gates] == ["both.tests.testing"]


def test_a_transition_of_the_parallel_state_leaves_every_region() -> None:
    run = Run(checks()).gate("both.tests.testing", "stop")

    assert run.value == "ended"
    assert run.said == [
        "disarm_timer both.tests.testing#5:after.0",
        "stop_task both.lint.linting#3:task.work",
    ]


def regions(left_to: str, right_to: str) -> list[str]:
    """Return which transitions of two regions are taken by one event, as they say it."""
    m = Machine("two", context=Ctx, start=lambda _: Ctx())
    both = m.parallel("both", initial=True)
    left, right = both.state("left"), both.state("right")
    a, b = left.state("a", initial=True), left.state("b")
    c, d = right.state("c", initial=True), right.state("d")
    out = m.state("out")
    places: dict[str, Any] = {"b": b, "d": d, "out": out, "stay": None, "both": both}
    both.gate(gate="both")
    a.on(Go, to=places[left_to], assign=lambda c, _: c.wrote("left"))
    c.on(Go, to=places[right_to], assign=lambda c, _: c.wrote("right"))
    both.on(Go, assign=lambda c, _: c.wrote("never: the regions come first"))
    run = Run(m.build()).gate("both", "go")
    log: list[str] = run.context["log"]
    return log


def test_two_regions_take_one_event_when_they_leave_nothing_of_each_other() -> None:
    assert regions("b", "d") == ["left", "right"]
    assert regions("stay", "d") == ["left", "right"]


def test_of_two_that_leave_the_same_state_the_first_in_document_order_wins() -> None:
    assert regions("out", "d") == ["left"]
    assert regions("b", "out") == ["left"]
    assert regions("out", "out") == ["left"]
    assert regions("stay", "out") == ["left", "right"]
    assert regions("both", "d") == ["left"]


def test_of_two_that_conflict_the_one_further_inside_wins() -> None:
    m = Machine("deep", context=Ctx, start=lambda _: Ctx())
    both = m.parallel("both", initial=True)
    left, right = both.state("left"), both.state("right")
    a = left.state("a", initial=True)
    c = right.state("c", initial=True)
    inner = c.state("inner", initial=True)
    deep = inner.state("deep", initial=True)
    out = m.state("out")
    both.gate(gate="both")
    # For the leaf `a` the parallel state's own transition is the first; for `deep` it is its own.
    both.on(Go, to=out, assign=lambda c, _: c.wrote("both"))
    deep.on(Go, to=out, assign=lambda c, _: c.wrote("deep"))
    a.on(Stop, to=a)

    run = Run(m.build()).gate("both", "go")

    assert run.context["log"] == ["deep"]


def test_a_transition_may_lead_into_several_regions() -> None:
    m = Machine("into", context=Ctx, start=lambda _: Ctx())
    waits = m.state("waits", initial=True)
    both = m.state("both", parallel=True)
    left, right, third = (both.state(name) for name in ("left", "right", "third"))
    left.state("a", initial=True)
    b = left.state("b")
    right.state("c", initial=True)
    d = right.state("d")
    third.state("e", initial=True)
    waits.gate().on(Go, to=(b, d))

    run = Run(m.build()).gate("waits", "go")

    assert run.value == {"both": {"left": "b", "right": "d", "third": "e"}}


def test_a_parallel_state_in_a_region_completes_what_is_around_it() -> None:
    m = Machine("nested", context=Ctx, start=lambda _: Ctx())
    outer = m.parallel("outer", initial=True)
    inner = outer.parallel("inner")
    for name in ("one", "two"):
        region = inner.state(name)
        waits = region.state("waits", initial=True)
        waits.gate(gate=name).on(Go, to=region.final("end"))
    inner.done(assign=lambda c, _: c.wrote("inner"))
    outer.done(to=m.final("end"), assign=lambda c, _: c.wrote("outer"))

    run = Run(m.build()).gate("one", "go")
    assert run.view.status == "active"
    run.gate("two", "go")

    assert (run.view.status, run.context["log"]) == ("done", ["inner", "outer"])


def test_a_region_may_be_a_state_without_states_inside() -> None:
    m = Machine("bare", context=Ctx, start=lambda _: Ctx())
    both = m.parallel("both", initial=True)
    bare = both.state("bare")
    other = both.state("other")
    waits = other.state("waits", initial=True)
    bare.gate().on(Go, assign=lambda c, _: c.wrote("bare"))
    waits.gate().on(Go, to=other.final("end"))
    both.done(to=m.final("never"))

    run = Run(m.build())
    assert run.value == {"both": {"bare": {}, "other": "waits"}}
    run.gate("both.bare", "go").gate("both.other.waits", "go")

    assert (run.view.status, run.context["log"]) == ("active", ["bare"])


def test_a_raised_event_reaches_every_region() -> None:
    m = Machine("raises", context=Ctx, start=lambda _: Ctx())
    both = m.parallel("both", initial=True)
    left, right = both.state("left"), both.state("right")
    a, b = left.state("a", initial=True), left.state("b")
    c, d = right.state("c", initial=True), right.state("d")
    a.gate().on(Go, to=b, raise_=lambda c, _: Next())
    c.on(Next, to=d)

    run = Run(m.build()).gate("both.left.a", "go")

    assert run.value == {"both": {"left": "b", "right": "d"}}


def test_a_guard_around_two_regions_is_asked_once() -> None:
    asked: list[str] = []

    def refuses(c: Ctx, e: Go) -> bool:
        asked.append("asked")
        return False

    m = Machine("asks", context=Ctx, start=lambda _: Ctx())
    both = m.parallel("both", initial=True)
    for name in ("left", "right"):
        both.state(name).state("a", initial=True)
    both.gate(gate="both")
    both.on(Go, guard=refuses, to=m.state("out"))

    Run(m.build()).gate("both", "go")

    assert asked == ["asked"]


def test_each_timer_of_a_state_fires_by_itself() -> None:
    m = Machine("timers", context=Ctx, start=lambda _: Ctx())
    waits = m.state("waits", initial=True)
    waits.after(timedelta(minutes=1), assign=lambda c: c.wrote("one"))
    waits.after(timedelta(minutes=2), assign=lambda c: c.wrote("two"))

    run = Run(m.build()).fired("waits#1:after.1").fired("waits#1:after.0")

    assert run.context["log"] == ["two", "one"]
    # What has fired is not stopped any more.
    assert run.machine.cancel(run.step.snapshot).commands == ()
