"""Names that two states have which may be active at once, and what a build of many states costs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jr2 import BuildRefused, BuiltMachine, Context, ExternalEvent, Machine, State
from jr2.drafts import StateDraft
from jr2.together import Users


class Go(ExternalEvent):
    """Go on."""


class Ctx(Context):
    n: int = 0


def machine() -> Machine[Any, Ctx, None]:
    return Machine("m", context=Ctx, start=lambda _: Ctx())


def many(count: int, grouped: Callable[[Machine[Any, Ctx, None], int], list[State[Ctx]]]) -> None:
    """Build a Machine in which each state has a Gate, a child, a timer and two transitions."""
    inner = Machine("inner")
    inner.final("end")
    inner.state("waits", initial=True)
    m = machine()
    child = m.child("child", inner.build())
    states = grouped(m, count)
    for number, state in enumerate(states):
        state.gate().on(Go, to=states[number - 1])
        state.after(timedelta(1), to=states[number - 2])
        state.invoke(child, id=f"child{number}")
    m.build()


def side_by_side(m: Machine[Any, Ctx, None], count: int) -> list[State[Ctx]]:
    regions = m.parallel("all", initial=True)
    return [regions.state(f"s{number}") for number in range(count)]


def in_a_row(m: Machine[Any, Ctx, None], count: int) -> list[State[Ctx]]:
    return [m.state(f"s{number}", initial=number == 0) for number in range(count)]


def in_groups(m: Machine[Any, Ctx, None], count: int) -> list[State[Ctx]]:
    groups = [m.state(f"g{number}", initial=number == 0) for number in range(count // 10)]
    return [
        group.state(f"s{number}", initial=number == 0) for group in groups for number in range(10)
    ]


def calls(work: Callable[[], None]) -> int:
    """Count the calls of functions and the resumptions of generators that some work takes."""
    counted = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return counted


@pytest.mark.parametrize("grouped", [side_by_side, in_a_row, in_groups])
def test_twice_the_states_cost_twice_the_work(
    grouped: Callable[[Machine[Any, Ctx, None], int], list[State[Ctx]]],
) -> None:
    many(10, grouped)  # what is worked out once is there already

    few, more = calls(lambda: many(100, grouped)), calls(lambda: many(400, grouped))

    assert more < 4.5 * few


@given(st.data())
def test_one_pass_finds_what_a_comparison_of_all_pairs_finds(data: st.DataObject) -> None:
    root = StateDraft(machine="m", key="", parent=None)
    drafts = [root]
    for number in range(data.draw(st.integers(1, 14))):
        parent = data.draw(st.sampled_from(drafts))
        parallel = data.draw(st.booleans())
        drafts.append(parent.add(f"s{number}", kind="parallel" if parallel else "compound"))
    order = [*root.down()]
    called = {draft: data.draw(st.sampled_from(["a", "b", ""])) for draft in order}

    users = Users()
    for number, draft in enumerate(order):
        name = called[draft]
        earlier = [one for one in order[:number] if one.is_with(draft) and called[one] == name]
        around = [*draft.up()]
        assert users.with_(name, draft) is next(iter(earlier), None)
        assert users.beside(name, draft) is next(
            (one for one in earlier if one not in around), None
        )
        users.add(name, draft)
        assert users.with_(name, draft) is (earlier[0] if earlier else draft)


def test_a_gate_named_like_the_default_of_another_region_is_refused() -> None:
    m = machine()
    both = m.parallel("both", initial=True)
    both.state("left").gate().on(Go)
    both.state("right").gate(gate="both.left").on(Go)

    with pytest.raises(BuildRefused) as refused:
        m.build()

    assert refused.value.problems == (
        'machine "m": state "both.right" has a Gate "both.left", and so has the state "both.left", '
        "which may be active at once",
    )


def approving(gate: str | None) -> BuiltMachine[Any, Any, None]:
    """Return a Machine to compose that waits at a Gate."""
    m = Machine("approving")
    m.state("review", initial=True).gate(gate=gate).on(Go, to=m.final("done"))
    return m.build()


def test_gates_of_composed_machines_are_told_apart_before_a_run() -> None:
    m = machine()
    both = m.parallel("both", initial=True)
    for region in ("left", "right"):
        both.state(region).invoke(m.child(region, approving("approve")))
    nested = Machine("nested")
    nested.state("inside", initial=True).invoke(nested.child("deep", approving(None)))
    both.state("third").invoke(m.child("third", nested.build()))
    both.state("fourth").gate(gate="third.deep.review").on(Go)
    around = both.state("fifth")
    around.invoke(m.child("fifth", approving("mine")))
    around.state("within", initial=True).gate(gate="mine").on(Go)
    own = both.state("sixth")
    own.gate(gate="its own").on(Go)
    own.invoke(m.child("sixth", approving("its own")))

    with pytest.raises(BuildRefused) as refused:
        m.build()

    text = 'and so has the state "{}", which may be active at once'
    assert refused.value.problems == (
        'machine "m": state "both.right" invokes the child "right", which has the Gate "approve", '
        + text.format("both.left"),
        'machine "m": state "both.fourth" has a Gate "third.deep.review", '
        + text.format("both.third"),
        'machine "m": state "both.fifth.within" has a Gate "mine", ' + text.format("both.fifth"),
        'machine "m": state "both.sixth" has a Gate "its own", and so has a Machine that it invokes',
    )


def test_gates_of_composed_machines_that_follow_each_other_are_fine() -> None:
    m = machine()
    first, second = m.state("first", initial=True), m.state("second")
    child = m.child("child", approving("approve"))
    first.invoke(child).done(to=second)
    second.invoke(child).done(to=m.final("done"))
    default = m.parallel("default")
    for region in ("left", "right"):
        default.state(region).invoke(m.child(region, approving(None)))

    m.build()


def test_one_gate_name_in_states_that_are_never_active_at_once_is_fine() -> None:
    m = machine()
    a, b = m.state("a", initial=True), m.state("b")
    a.gate(gate="review").on(Go, to=b)
    b.gate(gate="review").on(Go, to=a)

    m.build()


def test_gates_that_one_function_names_are_told_apart_by_the_run() -> None:
    def named(context: Ctx) -> str:
        return f"g{context.n}"

    m = machine()
    outer = m.state("outer", initial=True).gate(gate=named).on(Go)
    outer.state("inner", initial=True).gate(gate=named)

    m.build()
