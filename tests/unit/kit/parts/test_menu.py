"""Menus and picks: what an Agent is offered, what it may pick now, and what a pick moves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from jr2 import (
    AgentEvent,
    AgentFault,
    BuiltMachine,
    Context,
    Event,
    EventRefused,
    ExternalEvent,
    Machine,
    Turn,
    WorkspaceLost,
)
from jr2.host_wire import PickEvent, TurnFaulted
from jr2.kernel import allowed
from jr2.parts.menu import menu, menu_wire


class Ctx(Context):
    n: int = 0
    reason: str = ""


class Finish(AgentEvent):
    """The work is done."""

    commit: str


class GiveUp(AgentEvent):
    pass


class Note(Event):
    text: str = ""


class Approve(ExternalEvent):
    pass


class Unused(AgentEvent):
    pass


def two_states() -> BuiltMachine[Any, Any, Any]:
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    coder = m.agent("coder", model="x/y", instructions="x")
    other = m.agent("other", model="x/y", instructions="x")
    m.agent("silent", model="x/y", instructions="x")
    a, b, done = m.state("a", initial=True), m.state("b"), m.final("done")
    m.on(Note, assign=lambda c, e: c.set(reason=e.text)).on(WorkspaceLost, to=done)
    a.turn(coder, lambda c: Turn(prompt="x")).on(GiveUp, to=done).on(Approve, to=b)
    a.on(AgentFault, to=b, assign=lambda c, e: c.set(reason=e.reason))
    b.turn(coder, lambda c: Turn(prompt="x")).on(Finish, to=done)
    b.turn(other, lambda c: Turn(prompt="x"))
    m.state("c").on(Unused, to=done)
    return m.build()


def test_a_menu_is_the_union_of_what_its_states_derive_in_a_fixed_order() -> None:
    chart = two_states().chart

    assert menu(chart, "coder") == (Note, GiveUp, Finish)
    assert menu(chart, "other") == (Note, Finish)
    assert menu(chart, "silent") == ()
    assert [one["name"] for one in menu_wire(chart, "coder")] == ["note", "give_up", "finish"]
    assert menu_wire(chart, "coder")[2] == {
        "name": "finish",
        "description": "The work is done.",
        "input": Finish.model_json_schema(),
        "semantics": "ack",
    }


def test_an_agent_may_have_nothing_to_pick_where_nothing_inside_has_either() -> None:
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    coder = m.agent("coder", model="x/y", instructions="x")
    a = m.state("a", initial=True).turn(coder, lambda c: Turn(prompt="x"))
    a.after(timedelta(hours=1), to=m.final("done"))
    a.state("b", initial=True).on(Approve)
    machine = m.build()

    (turn, timer) = machine.start(None, "run-1").commands

    assert menu(machine.chart, "coder") == ()
    assert (turn.kind, timer.kind) == ("start_turn", "arm_timer")
    assert turn.kind == "start_turn"
    assert turn.picks == []


def test_a_menu_is_the_same_in_every_build_and_after_customize() -> None:
    assert menu_wire(two_states().chart, "coder") == menu_wire(two_states().chart, "coder")


def asked(
    write: Callable[[Any, Any], object], context: Callable[[], Ctx] = Ctx
) -> tuple[BuiltMachine[Any, Any, Any], Any, str]:
    """Return a Machine with one Turn under way, its step, and the key of the Turn."""
    m = Machine("m", context=Ctx, start=lambda _: context())
    coder = m.agent("coder", model="x/y", instructions="x")
    a, done = m.state("a", initial=True), m.final("done")
    a.turn(coder, lambda c: Turn(prompt="x"))
    write(a, done)
    machine = m.build()
    step = machine.start(None, "run-1")
    (command,) = step.commands
    assert command.kind == "start_turn"
    return machine, step, command.key


def swallowing(c: Ctx, e: Finish) -> bool:
    try:
        return e.commit == "x"
    except Exception:
        return False


def raising(c: Ctx, e: Event) -> bool:
    raise RuntimeError


@pytest.mark.parametrize(
    ("write", "names"),
    [
        (lambda a, done: a.on(Finish, to=done), ("finish",)),
        (lambda a, done: a.on(Finish, to=done, guard=lambda c, e: c.n == 0), ("finish",)),
        (lambda a, done: a.on(Finish, to=done, guard=lambda c, e: c.n > 0), ()),
        # What reads the pick is judged at delivery, whatever it makes of the probe.
        (lambda a, done: a.on(Finish, to=done, guard=lambda c, e: e.commit == "x"), ("finish",)),
        (lambda a, done: a.on(Finish, to=done, guard=lambda c, e: c.n > 0 and e.commit), ()),
        (lambda a, done: a.on(Finish, to=done, guard=lambda c, e: e == Finish), ("finish",)),
        (lambda a, done: a.on(Finish, to=done, guard=lambda c, e: "x" in repr(e)), ("finish",)),
        (lambda a, done: a.on(Finish, to=done, guard=lambda c, e: bool(dict(e))), ("finish",)),
        (lambda a, done: a.on(Finish, to=done, guard=swallowing), ("finish",)),
        (lambda a, done: a.on(Finish, to=done, guard=raising), ("finish",)),
        (
            lambda a, done: a.on(Finish, to=done, guard=lambda c, e: isinstance(e, GiveUp)),
            (),
        ),
        # Neither target nor action: nothing would come of it.
        (lambda a, done: a.on(Finish), ()),
        (lambda a, done: a.on(Finish).on(Finish, to=done), ()),
        (lambda a, done: a.on(Finish, assign=lambda c, e: c.set(n=1)), ("finish",)),
        (lambda a, done: a.on(Approve, to=done), ()),
        (lambda a, done: a.on(Note, to=done).on(GiveUp, to=done), ("note", "give_up")),
    ],
)
def test_guards_narrow_what_may_be_picked(
    write: Callable[[Any, Any], object], names: tuple[str, ...]
) -> None:
    machine, step, key = asked(write)

    assert allowed(machine.chart, step.snapshot, key) == names


def test_a_pick_moves_the_state_and_ends_the_turn() -> None:
    machine, step, key = asked(lambda a, done: a.on(Finish, to=done))

    step = machine.step(step.snapshot, PickEvent(key=key, name="finish", payload={"commit": "x"}))

    assert machine.view(step.snapshot).value == "done"
    assert step.receipt is not None
    assert step.receipt.model_dump() == {
        "event": "finish",
        "moved": True,
        "turn_complete": True,
        "allowed": [],
    }
    assert [one.kind for one in step.commands] == ["stop_turn"]


def test_a_pick_that_every_guard_refuses_is_delivered_and_moves_nothing() -> None:
    machine, step, key = asked(
        lambda a, done: a.on(Finish, to=done, guard=lambda c, e: e.commit == "y")
    )

    step = machine.step(step.snapshot, PickEvent(key=key, name="finish", payload={"commit": "x"}))

    assert step.receipt is not None
    assert (step.receipt.moved, step.receipt.turn_complete) == (False, False)
    assert step.receipt.allowed == ["finish"]
    assert step.commands == ()


@pytest.mark.parametrize(
    ("name", "payload", "says"),
    [
        ("approve", {}, "finish"),
        ("unheard", {}, "finish"),
        ("finish", {}, "commit"),
        ("finish", {"commit": "x", "more": 1}, "more"),
    ],
)
def test_a_pick_that_is_none_is_refused_with_what_is_accepted(
    name: str, payload: dict[str, Any], says: str
) -> None:
    machine, step, key = asked(lambda a, done: a.on(Finish, to=done).on(Approve, to=done))

    with pytest.raises(EventRefused, match=says) as refused:
        machine.step(step.snapshot, PickEvent(key=key, name=name, payload=payload))

    assert refused.value.code == 400


def test_a_fault_is_heard_by_the_state_that_asked() -> None:
    machine = two_states()
    step = machine.start(None, "run-1")
    (command,) = step.commands
    assert command.kind == "start_turn"

    fault = TurnFaulted(key=command.key, instance_id="run-1/root/coder", reason="memory limit")
    step = machine.step(step.snapshot, fault)

    assert machine.view(step.snapshot).value == "b"
    assert machine.view(step.snapshot).context == {"n": 0, "reason": "memory limit"}


def test_what_is_no_turn_faults_the_run_and_names_the_surface() -> None:
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    coder = m.agent("coder", model="x/y", instructions="x")
    wrong: Any = lambda c: {"prompt": "x"}  # noqa: E731
    m.state("a", initial=True).on(Finish).turn(coder, wrong)
    machine = m.build()

    view = machine.view(machine.start(None, "run-1").snapshot)

    assert view.status == "error"
    assert 'the Agent "coder" is given an object of type dict, and not a Turn(prompt, cwd, ' in (
        view.fault or ""
    )
