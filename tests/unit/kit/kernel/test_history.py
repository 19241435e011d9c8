"""History: a state is entered where it was left last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jr2 import BuiltMachine, Context, ExternalEvent, Machine
from tests.unit.kit.kernel.runs import Run


class Ctx(Context):
    pass


class Into(ExternalEvent):
    to: str


class Pause(ExternalEvent):
    pass


class Resume(ExternalEvent):
    how: str = "deep"


def editor() -> BuiltMachine[Any, Ctx, None]:
    m = Machine("editor", context=Ctx, start=lambda _: Ctx())
    work, paused = m.state("work", initial=True), m.state("paused")
    work.gate(gate="work")
    for part in ("one", "two"):
        state = work.state(part, initial=part == "one")
        for leaf in ("a", "b"):
            inner = state.state(leaf, initial=leaf == "a")
            work.on(Into, guard=at(f"{part}.{leaf}"), to=inner)
    work.on(Pause, to=paused)
    paused.gate(gate="paused")
    paused.on(Resume, guard=lambda _, e: e.how == "deep", to=work.history("deep", deep=True))
    paused.on(Resume, guard=lambda _, e: e.how == "shallow", to=work.history("shallow"))
    paused.on(Resume, guard=lambda _, e: e.how == "start", to=work)
    return m.build()


def at(place: str) -> Callable[[Ctx, Into], bool]:
    return lambda _, event: event.to == place


@pytest.mark.parametrize(
    ("how", "value"),
    [
        ("deep", {"work": {"two": "b"}}),
        ("shallow", {"work": {"two": "a"}}),
        ("start", {"work": {"one": "a"}}),
    ],
)
def test_what_was_left_last_is_entered_again(how: str, value: Any) -> None:
    run = Run(editor()).gate("work", "into", to="two.b").gate("work", "pause")

    run.gate("paused", "resume", how=how)

    assert run.value == value


def test_the_last_time_counts() -> None:
    run = Run(editor()).gate("work", "into", to="two.b").gate("work", "pause")
    run.gate("paused", "resume").gate("work", "into", to="one.b").gate("work", "pause")

    assert run.gate("paused", "resume").value == {"work": {"one": "b"}}


def never_left(default: str | None) -> Any:
    m = Machine("never", context=Ctx, start=lambda _: Ctx())
    idle, work = m.state("idle", initial=True), m.state("work")
    work.state("a", initial=True)
    b = work.state("b")
    history = work.history() if default is None else work.history(default=b)
    idle.gate().on(Resume, to=history)
    return Run(m.build()).gate("idle", "resume").value


def test_a_state_that_was_never_left_has_a_default() -> None:
    assert never_left("b") == {"work": "b"}
    assert never_left(None) == {"work": "a"}


def test_the_history_of_a_parallel_state_is_that_of_each_region() -> None:
    m = Machine("regions", context=Ctx, start=lambda _: Ctx())
    idle, both = m.state("idle", initial=True), m.parallel("both")
    resume = both.history(deep=True)
    for name in ("left", "right"):
        region = both.state(name)
        a, b = region.state("a", initial=True), region.state("b")
        a.gate(gate=name).on(Into, to=b)
    idle.gate(gate="idle").on(Resume, to=resume)
    both.gate(gate="both").on(Pause, to=idle)
    run = Run(m.build())

    assert run.gate("idle", "resume").value == {"both": {"left": "a", "right": "a"}}
    run.gate("right", "into", to="b").gate("both", "pause")
    assert run.gate("idle", "resume").value == {"both": {"left": "a", "right": "b"}}


def test_what_history_enters_starts_anew() -> None:
    m = Machine("anew", context=Ctx, start=lambda _: Ctx())
    work, paused = m.state("work", initial=True), m.state("paused")
    a = work.state("a", initial=True)
    a.gate(gate="a").on(Pause, to=paused)
    paused.gate(gate="paused").on(Resume, to=work.history())
    run = Run(m.build())
    before = run.view.gates[0].id

    run.gate("a", "pause").gate("paused", "resume")

    assert run.view.gates[0].id != before
    assert run.value == {"work": "a"}


def test_the_document_and_the_shape_tell_of_history() -> None:
    def shaped(deep: bool) -> BuiltMachine[Any, Ctx, None]:
        m = Machine("told", context=Ctx, start=lambda _: Ctx())
        work = m.state("work", initial=True)
        a = work.state("a", initial=True)
        a.entry(assign=lambda c: c).exit(assign=lambda c: c)
        a.gate(gate=lambda c: "a").on(Pause, to=work.history(deep=deep))
        return m.build()

    machine = shaped(deep=True)
    (work,) = machine.document()["states"]
    a, history = work["states"]

    assert (history["type"], history["deep"], history["default"]) == ("history", True, ["work.a"])
    assert (a["entry"], a["exit"], a["gate"]["id"]) == (["assign"], ["assign"], None)
    assert machine.shape() != shaped(deep=False).shape()
