"""What the build refuses of parallel states, history, targets and contexts."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from jr2 import BuildRefused, Context, ExternalEvent, Machine
from jr2.drafts import MOST_DEEP
from jr2.testing import start


class Ctx(Context):
    n: int = 0


class Go(ExternalEvent):
    pass


def refused(write: Any, context: type[Context] = Ctx) -> tuple[str, ...]:
    m = Machine("m", context=context, start=lambda _: context())
    write(m)
    with pytest.raises(BuildRefused) as found:
        m.build()
    return tuple(problem.removeprefix('machine "m": ') for problem in found.value.problems)


def test_a_parallel_state_has_regions_and_no_initial_or_final_one() -> None:
    def write(m: Any) -> None:
        both = m.parallel("both", initial=True)
        both.state("left", initial=True)
        both.final("end")
        m.parallel("empty")

    assert refused(write) == (
        'state "both" is parallel, so each of its states is entered: "left" is not initial',
        'state "both" is parallel and has the final state "end": it is done when each of its '
        "states is",
        'state "empty" is parallel and has no states inside, so it would be complete at once',
    )


def deep(states: int) -> Machine[Any, Context, None]:
    m = Machine("m")
    inner: Any = m
    for _ in range(states):
        inner = inner.state("s", initial=True)
    inner.gate().on(Go, to=m.final("end"))
    return m


def test_a_machine_as_deep_as_may_be_survives_its_steps() -> None:
    run = start(deep(MOST_DEEP).build())

    run.send(Go())

    assert run.value == "end"


def test_a_machine_that_is_too_deep_is_refused_once() -> None:
    with pytest.raises(BuildRefused) as found:
        deep(1500).build()

    place = ".".join("s" * MOST_DEEP)
    assert found.value.problems == (
        f'machine "m": state "{place}" has states inside, and it is 100 states deep itself: a '
        "snapshot of more is not read back — compose Machines, with a child for what is inside",
    )


def test_history_needs_something_to_enter() -> None:
    def write(m: Any) -> None:
        work, other = m.state("work", initial=True), m.state("other")
        work.history()
        other.state("a", initial=True)
        other.history(default=work)
        other.history("self", default=other)

    assert refused(write) == (
        'state "work" has a history and no states of its own to enter',
        'state "other.history" has the default "work", which is not inside the state around it',
        'state "other.self" has the default "other", which is not inside the state around it',
    )


def test_several_targets_are_active_at_once() -> None:
    other = Machine("other").state("there", initial=True)

    def write(m: Any) -> None:
        a, b = m.state("a", initial=True), m.state("b")
        a.on(Go, to=(a, b))
        b.on(Go, to=(other, b))

    assert refused(write) == (
        'state "a" goes to "a" and "b" on "go", which are never active at once',
        'state "b" goes to state "there" of another machine, "other", on "go"',
    )


def test_two_gates_of_one_name_in_two_regions_are_refused() -> None:
    def write(m: Any) -> None:
        both = m.parallel("both", initial=True)
        for name in ("left", "right"):
            both.state(name).gate(gate="same").on(Go)

    assert refused(write) == (
        'state "both.right" has a Gate "same", and so has the state "both.left", which may be '
        "active at once",
    )


class Deep(BaseModel):
    tags: frozenset[str] = frozenset()
    again: Deep | None = None


class Sets(Context):
    plain: set[int]
    fine: list[str]
    deep: dict[str, list[Deep]]


def test_a_context_holds_no_sets() -> None:
    end = "a set has no order, so two processes would write it differently — use a tuple or a list"

    assert refused(lambda m: m.state("a", initial=True), Sets) == (
        f'has a set in the field "plain" of Sets: {end}',
        f'has a set in the field "deep" of Sets: {end}',
    )


def test_a_context_needs_no_schema() -> None:
    class Handle:
        pass

    class Odd(Context):
        model_config = ConfigDict(arbitrary_types_allowed=True)

        handle: Handle | None = None

    m = Machine("odd", context=Odd, start=lambda _: Odd())
    m.state("a", initial=True)

    assert m.build().id == "odd"
