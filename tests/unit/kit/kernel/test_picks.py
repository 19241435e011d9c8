"""Turns: what an Agent may pick, how a pick is delivered, and how a Turn ends."""

from __future__ import annotations

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
    kernel,
)
from jr2.host_wire import PickEvent, TaskDone, TimerFired, TurnEnded, TurnFaulted
from tests.unit.kit.kernel.runs import Run


class Ctx(Context):
    rounds: int = 0
    fault: str = ""


class Submit(AgentEvent):
    commit: str


class Giveup(AgentEvent):
    pass


class Note(Event):
    text: str = ""


class Quiet(AgentEvent):
    pass


class Never(AgentEvent):
    pass


class Approve(ExternalEvent):
    pass


KEY = "coding#1:turn.coder"


def ticket() -> BuiltMachine[Any, Ctx, None]:
    m = Machine("ticket", context=Ctx, start=lambda _: Ctx())
    coder = m.agent("coder", model="x/y", instructions="Code.", workspace="none")
    coding, review, told = m.state("coding", initial=True), m.state("review"), m.state("told")
    coding.turn(coder, lambda c: Turn(prompt="go"))
    coding.on(Submit, to=review, guard=lambda c, e: e.commit.startswith("a"))
    coding.on(Giveup, to=told, guard=lambda c, _: c.rounds > 0)
    coding.on(Note, assign=lambda c, _: c.set(rounds=c.rounds + 1))
    coding.on(Quiet)
    coding.on(Approve, to=told)
    coding.on(AgentFault, to=told, assign=lambda c, e: c.set(fault=f"{e.instance_id}: {e.reason}"))
    m.on(Never, to=told, guard=lambda c, _: False)
    return m.build()


def allowed(run: Run, key: str = KEY) -> tuple[str, ...]:
    return kernel.allowed(run.machine.chart, run.step.snapshot, key)


def test_a_turn_starts_with_what_its_state_takes_from_the_agent() -> None:
    run = Run(ticket())

    (start,) = run.step.commands
    told = start.model_dump()
    assert told.pop("input")["prompt"] == "go"
    assert told == {
        "kind": "start_turn",
        "key": KEY,
        "machine": [],
        "slot": "coder",
        "actor": [],
        "picks": ["submit", "giveup", "note", "quiet", "never"],
    }


def test_what_is_allowed_is_what_a_guard_does_not_refuse_without_the_payload() -> None:
    run = Run(ticket())
    assert allowed(run) == ("submit", "note")

    run.pick(KEY, "note")

    assert allowed(run) == ("submit", "giveup", "note")
    assert allowed(run, "coding#9:turn.coder") == ()


def test_a_pick_moves_the_state_that_asked() -> None:
    run = Run(ticket()).pick(KEY, "submit", commit="abc")

    assert run.value == "review"
    assert run.said == [f"stop_turn {KEY}"]
    receipt = run.step.receipt
    assert receipt is not None
    assert receipt.model_dump() == {
        "event": "submit",
        "moved": True,
        "turn_complete": True,
        "allowed": [],
    }


def test_a_pick_that_each_guard_refuses_moves_nothing() -> None:
    run = Run(ticket())
    before = run.step.snapshot

    run.pick(KEY, "submit", commit="bcd")

    assert run.step.snapshot == before
    receipt = run.step.receipt
    assert receipt is not None
    assert (receipt.moved, receipt.turn_complete) == (False, False)
    assert receipt.allowed == ["submit", "note"]


def test_a_pick_that_leaves_the_state_active_lets_the_turn_go_on() -> None:
    run = Run(ticket()).pick(KEY, "note", text="half way")

    receipt = run.step.receipt
    assert receipt is not None
    assert (receipt.moved, receipt.turn_complete) == (True, False)
    assert receipt.allowed == ["submit", "giveup", "note"]
    assert run.said == []


@pytest.mark.parametrize(
    ("event", "code", "text"),
    [
        (
            PickEvent(key=KEY, name="approve", payload={}),
            400,
            'state "coding" does not take the pick "approve" of Agent "coder" '
            "(it takes: submit, giveup, note, quiet, never)",
        ),
        (
            PickEvent(key=KEY, name="submit", payload={}),
            400,
            'event "submit" does not fit: commit: Field required — it takes {commit: string}',
        ),
        (
            PickEvent(key="coding#9:turn.coder", name="submit", payload={}),
            404,
            'no Turn waits for the pick "submit": it is over',
        ),
    ],
)
def test_a_pick_that_is_not_taken_is_refused(event: PickEvent, code: int, text: str) -> None:
    with pytest.raises(EventRefused) as refused:
        Run(ticket()).send(event)

    assert (refused.value.code, refused.value.message) == (code, text)


def test_the_fault_of_a_turn_is_heard_by_the_state_that_asked() -> None:
    run = Run(ticket()).send(
        TurnFaulted(key=KEY, instance_id="r/root/coder", reason="memory limit")
    )

    assert run.value == "told"
    assert run.context["fault"] == "r/root/coder: memory limit"
    # It has ended: it is not stopped as well.
    assert run.said == []


def test_a_fault_that_no_state_takes_changes_nothing_but_that_the_turn_is_over() -> None:
    m = Machine("deaf", context=Ctx, start=lambda _: Ctx())
    coder = m.agent("coder", model="x/y", instructions="Code.", workspace="none")
    coding, end = m.state("coding", initial=True), m.state("end")
    coding.turn(coder, lambda c: Turn(prompt="go")).on(Submit, to=end).gate().on(Approve, to=end)
    run = Run(m.build())

    run.send(TurnFaulted(key=KEY, instance_id="i", reason="r"))

    assert (run.view.status, run.value) == ("active", "coding")
    assert not kernel.is_live(run.machine.chart, run.step.snapshot, KEY)
    with pytest.raises(EventRefused, match="it is over"):
        run.pick(KEY, "submit", commit="a")
    assert run.gate("coding", "approve").said == []


def test_a_turn_without_a_menu_ends_by_itself() -> None:
    run = Run(ticket()).send(TurnEnded(key=KEY))

    assert run.value == "coding"
    assert not kernel.is_live(run.machine.chart, run.step.snapshot, KEY)


@pytest.mark.parametrize("event", [TaskDone(key=KEY), TimerFired(key=KEY)])
def test_a_turn_does_not_end_like_a_task(event: Any) -> None:
    run = Run(ticket())
    before = run.step.snapshot

    assert run.machine.step(before, event).snapshot is before


def test_a_pick_in_a_region_is_not_heard_by_another() -> None:
    m = Machine("two", context=Ctx, start=lambda _: Ctx())
    coder = m.agent("coder", model="x/y", instructions="Code.", workspace="none")
    both = m.parallel("both", initial=True)
    for name in ("left", "right"):
        region = both.state(name)
        asks, ended = region.state("asks", initial=True), region.state("ended")
        asks.turn(coder, lambda c: Turn(prompt="go")).on(Giveup, to=ended)
    run = Run(m.build())

    run.pick("both.left.asks#3:turn.coder", "giveup")

    assert run.value == {"both": {"left": "ended", "right": "asks"}}


def test_a_pick_in_a_child_is_heard_by_the_child() -> None:
    m = Machine("parent", context=Ctx, start=lambda _: Ctx())
    m.state("hosting", initial=True).invoke(m.child("ticket", ticket()))
    run = Run(m.build())
    key = f"hosting#1:child.ticket/{KEY}"
    assert run.step.commands[0].model_dump()["actor"] == ["ticket"]
    assert allowed(run, key) == ("submit", "note")
    assert allowed(run, f"hosting#1:child.other/{KEY}") == ()
    ended = run.machine.fault(run.step.snapshot, "over").snapshot
    assert kernel.allowed(run.machine.chart, ended, key) == ()

    run.pick(key, "submit", commit="abc")

    assert run.said == [f"stop_turn {key}"]
    assert run.step.receipt is not None
    assert run.step.receipt.turn_complete
    assert not kernel.is_live(run.machine.chart, run.step.snapshot, key)


def test_a_pick_whose_transition_fails_ends_the_run() -> None:
    m = Machine("broken", context=Ctx, start=lambda _: Ctx())
    coder = m.agent("coder", model="x/y", instructions="Code.", workspace="none")
    coding = m.state("coding", initial=True)
    coding.turn(coder, lambda c: Turn(prompt="go"))
    coding.on(Giveup, assign=lambda c, _: c.set(rounds=1 // 0))
    run = Run(m.build()).pick(KEY, "giveup")

    assert run.view.status == "error"
    assert run.step.receipt is not None
    assert (run.step.receipt.moved, run.step.receipt.turn_complete) == (False, True)


def probed(guard: Any, *, then: bool = False) -> bool:
    m = Machine("probe", context=Ctx, start=lambda _: Ctx())
    coder = m.agent("coder", model="x/y", instructions="Code.", workspace="none")
    coding, end = m.state("coding", initial=True), m.state("end")
    coding.turn(coder, lambda c: Turn(prompt="go"))
    coding.on(Submit, guard=guard, to=end if not then else None)
    if then:
        coding.on(Submit, to=end)
    run = Run(m.build())
    return kernel.may_move(run.machine.chart, run.step.snapshot, 1, Submit)


@pytest.mark.parametrize(
    "guard",
    [
        lambda c, e: e.commit == "a",
        lambda c, e: e == Submit(commit="a"),
        lambda c, e: e in {Submit},
        lambda c, e: f"{e}" == "",
        lambda c, e: bool(list(e)),
        lambda c, e: getattr(e, "commit", "") == "a",
        lambda c, e: c.missing,
    ],
)
def test_a_guard_that_reads_the_pick_or_raises_cannot_be_known_before(guard: Any) -> None:
    assert probed(guard)


def test_a_guard_that_does_not_read_the_pick_is_believed() -> None:
    assert not probed(lambda c, e: c.rounds > 0)
    assert not probed(lambda c, e: not isinstance(e, Submit))
    assert probed(lambda c, e: isinstance(e, Submit))


def test_a_transition_that_does_nothing_stands_before_what_follows_it() -> None:
    assert not probed(lambda c, e: True, then=True)
    assert probed(lambda c, e: False, then=True)
    # It reads the pick: whether it stands before the next one is not known.
    assert probed(lambda c, e: e.commit == "a", then=True)
