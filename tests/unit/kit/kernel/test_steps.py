"""The kernel, as tables: a snapshot and an event give a snapshot and commands.

The Machine `ticket` has a compound state with tasks and a timer, and a Gate with a timer; `paths`
has the transitions that differ only in what they leave and enter. The cases are in
`tests/cases/charts/`; each names the snapshot as it stands in the store.
"""

from __future__ import annotations

import functools
import json
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from jr2 import (
    AgentEvent,
    BuiltMachine,
    Context,
    Event,
    EventRefused,
    ExternalEvent,
    Machine,
    Message,
    host_wire,
    kernel,
)
from jr2.host_wire import GateEvent, TaskDone, TaskFailed, TimerFired
from jr2.snapshot import SnapshotError, read_again

CASES = Path(__file__).parents[3] / "cases" / "charts"
_EVENT: TypeAdapter[Any] = TypeAdapter(host_wire.StepEvent)


class Door(BaseModel):
    ticket: str


class Ctx(Context):
    ticket: str
    rounds: int = 0
    log: tuple[str, ...] = ()

    def wrote(self, line: str) -> Ctx:
        return self.set(log=(*self.log, line))


class Out(BaseModel):
    outcome: str
    log: tuple[str, ...]


class Approve(ExternalEvent):
    """Ship it."""


class RequestChanges(ExternalEvent):
    notes: str


class Note(Event):
    text: str


class Finish(AgentEvent):
    summary: str


class Shipped(Message):
    ticket: str


async def code(ticket: str) -> str:
    return f"patch for {ticket}"


async def check(ticket: str) -> bool:
    return True


def ticket_machine() -> BuiltMachine[Door, Ctx, Out]:
    m = Machine(
        "ticket", door=Door, context=Ctx, output=Out, start=lambda i: Ctx(ticket=i.door.ticket)
    )
    coder, checker = m.task("code", code), m.task("check", check)
    working, review = m.state("working", initial=True), m.state("review")
    coding, checking = working.state("coding", initial=True), working.state("checking")
    passed = working.final("passed", lambda c: c.rounds)
    shipped = m.final("shipped", lambda c: Out(outcome="shipped", log=c.log))
    lapsed = m.final("lapsed", lambda c: Out(outcome="lapsed", log=c.log))

    m.on(Note, assign=lambda c, e: c.wrote(e.text))
    working.done(to=review, assign=lambda c, rounds: c.wrote(f"passed in {rounds}"))
    working.after(timedelta(hours=1), guard=lambda c: c.rounds > 3, to=lapsed)
    coding.run(coder, lambda c: c.ticket).done(
        to=checking, assign=lambda c, patch: c.set(rounds=c.rounds + 1).wrote(patch)
    )
    checking.run(checker, lambda c: c.ticket).done(to=passed, guard=lambda c, good: good).done(
        to=coding, assign=lambda c, _: c.wrote("red")
    ).failed(to=coding, assign=lambda c, error: c.wrote(error.reason))
    checking.after(timedelta(seconds=30), to=coding)
    review.gate(meta=lambda c: {"ticket": c.ticket, "rounds": c.rounds})
    review.on(Finish, to=lapsed)
    review.on(Approve, to=shipped, emit=lambda c, _: Shipped(ticket=c.ticket))
    review.on(RequestChanges, to=working, assign=lambda c, e: c.wrote(e.notes))
    review.after(timedelta(days=7), to=lapsed)
    return m.build()


class Go(ExternalEvent):
    to: str


class Count(Context):
    n: int = 0


def misspelt(context: Count) -> Count:
    """A field that no build sees, for the function is not given to a statement."""
    return context.set(m=1)


def paths_machine() -> BuiltMachine[Any, Count, None]:
    m = Machine("paths", context=Count, start=lambda _: Count())
    hub = m.state("hub", initial=True)
    one, two = hub.state("one", initial=True), hub.state("two")
    deep = two.state("deep", initial=True)
    low, loop_a, loop_b = m.state("low"), m.state("loop_a"), m.state("loop_b")
    end = m.final("end")

    hub.gate(gate="hub")
    hub.on(Go, guard=lambda _, e: e.to == "internal", to=two, internal=True)
    hub.on(Go, guard=lambda _, e: e.to == "external", to=two)
    hub.on(Go, guard=lambda _, e: e.to == "self", to=hub)
    hub.on(Go, guard=lambda _, e: e.to == "stay", assign=lambda c, _: c.set(n=c.n + 1))
    hub.on(Go, guard=lambda _, e: e.to == "loop", to=loop_a)
    hub.on(Go, guard=lambda _, e: e.to == "low", to=low)
    hub.on(Go, guard=lambda _, e: bool(1 / (len(e.to) - 4)) and e.to == "raise", to=low)
    hub.on(Go, guard=lambda _, e: e.to == "broken", assign=lambda c, _: c.set(n="many"))
    hub.on(Go, guard=lambda _, e: e.to == "wrong", assign=lambda c, _: misspelt(c))
    deep.on(Go, guard=lambda _, e: e.to == "inner", to=one)
    hub.after(timedelta(minutes=5), to=end)
    one.after(lambda c: timedelta(seconds=c.n), to=two)
    two.after(timedelta(seconds=1), to=low)
    deep.after(timedelta(seconds=2), to=low)
    low.always(guard=lambda c: c.n == 0, to=end)
    low.always(to=hub)
    loop_a.always(to=loop_b)
    loop_b.always(to=loop_a)
    return m.build()


MACHINES: dict[str, BuiltMachine[Any, Any, Any]] = {
    "ticket": ticket_machine(),
    "paths": paths_machine(),
}


def cases() -> list[Any]:
    found = []
    for file in sorted(CASES.glob("*.json")):
        table = json.loads(file.read_text())
        found += [
            pytest.param(table["machine"], case, id=f"{file.stem}-{case['name']}")
            for case in table["cases"]
        ]
    return found


@pytest.mark.parametrize(("machine_id", "case"), cases())
def test_a_step_is_what_the_table_says(machine_id: str, case: dict[str, Any]) -> None:
    machine = MACHINES[machine_id]
    if "start" in case:
        step = machine.start(case["start"], "run-1")
    else:
        snapshot = machine.load(json.dumps(case["snapshot"]).encode())
        event = _EVENT.validate_python(case["event"])
        if "refused" in case:
            with pytest.raises(EventRefused) as refused:
                machine.step(snapshot, event)

            assert refused.value.code == case["refused"]["code"]
            assert refused.value.message == case["refused"]["error"]
            return
        step = machine.step(snapshot, event)
        if case.get("same"):
            assert step.snapshot is snapshot
            assert step.commands == ()
            return

    assert json.loads(machine.dump(step.snapshot)) == case["then"]
    assert [
        command.model_dump(mode="json", exclude_defaults=True) | {"kind": command.kind}
        for command in step.commands
    ] == case["commands"]


def test_every_table_is_read() -> None:
    assert len(cases()) >= 30


def test_a_chart_is_frozen_and_hashable() -> None:
    chart = MACHINES["ticket"].chart

    assert hash(chart) == hash(chart)
    assert [node.id for node in chart.nodes] == [
        "",
        "working",
        "working.coding",
        "working.checking",
        "working.passed",
        "review",
        "shipped",
        "lapsed",
    ]
    with pytest.raises(AttributeError):
        chart.nodes[0].kind = "final"  # type: ignore[misc]


def test_stop_live_names_what_a_cancel_has_to_stop() -> None:
    machine = MACHINES["ticket"]
    step = machine.start({"ticket": "T-1"}, "run-1")

    assert [command.model_dump() for command in kernel.stop_live(machine.chart, step.snapshot)] == [
        {"kind": "stop_task", "key": "working.coding#2:task.code"},
        {"kind": "disarm_timer", "key": "working#1:after.0"},
    ]
    over = machine.fault(step.snapshot, "the worker gave up")
    assert over.snapshot.fault == "the worker gave up"
    assert kernel.stop_live(machine.chart, over.snapshot) == ()


def test_a_view_shows_value_context_and_gates() -> None:
    machine = MACHINES["ticket"]
    step = machine.start({"ticket": "T-1"}, "run-1")
    assert machine.view(step.snapshot).value == {"working": "coding"}
    step = machine.step(step.snapshot, TaskDone(key="working.coding#2:task.code", output="p"))
    step = machine.step(step.snapshot, TaskDone(key="working.checking#3:task.check", output=True))

    view = machine.view(step.snapshot)

    assert view.status == "active"
    assert view.value == "review"
    assert view.context == {"ticket": "T-1", "rounds": 1, "log": ["p", "passed in 1"]}
    (gate,) = view.gates
    assert (gate.gate, gate.id, gate.path) == ("review", "review#5", ["review"])
    assert gate.meta == {"ticket": "T-1", "rounds": 1}
    assert [event["name"] for event in gate.accepts] == ["approve", "request_changes", "note"]
    assert gate.accepts[0]["description"] == "Ship it."
    schema = gate.accepts[1]["input"]
    assert isinstance(schema, dict)
    assert schema["required"] == ["notes"]
    assert schema["additionalProperties"] is False


def test_a_done_run_shows_its_output() -> None:
    machine = MACHINES["ticket"]
    step = machine.start({"ticket": "T-1"}, "run-1")
    step = machine.step(step.snapshot, TaskDone(key="working.coding#2:task.code", output="p"))
    step = machine.step(step.snapshot, TaskDone(key="working.checking#3:task.check", output=True))
    step = machine.step(step.snapshot, TimerFired(key="review#5:after.0"))

    view = machine.view(step.snapshot)

    assert (view.status, view.value) == ("done", "lapsed")
    assert view.output == {"outcome": "lapsed", "log": ["p", "passed in 1"]}
    assert view.gates == []


def test_the_snapshot_of_a_parked_run_is_small() -> None:
    step = MACHINES["paths"].start(None, "0b9cf1c2-8c59-4b4b-9d7a-2f6a3c0f6a55")

    assert len(MACHINES["paths"].dump(step.snapshot)) < 250


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"v": 1}, "version 1"),
        ({"machine": "other"}, "machine 'other'"),
        ({"at": {"nowhere": 1}}, "no state 'nowhere'"),
        ({"context": {"ticket": 3}}, "ValidationError"),
        ({"count": None}, "TypeError"),
    ],
)
def test_a_foreign_snapshot_is_not_read(change: dict[str, Any], text: str) -> None:
    machine = MACHINES["ticket"]
    good = json.loads(machine.dump(machine.start({"ticket": "T-1"}, "run-1").snapshot))

    with pytest.raises(SnapshotError, match=text):
        machine.load(json.dumps(good | change).encode())
    with pytest.raises(SnapshotError):
        machine.load(b"no JSON")


def faulty(
    start: Any = lambda _: Count(), output: Any = None, **gate: Any
) -> BuiltMachine[Any, Any, Any]:
    m = Machine("faulty", context=Count, start=start, output=int)
    waits = m.state("waits", initial=True)
    waits.on(Go, to=m.final("end", output or (lambda c: c.n)))
    waits.gate(**gate)
    return m.build()


@pytest.mark.parametrize(
    ("machine", "text"),
    [
        (faulty(start=lambda _: 1 / 0), "the start raised ZeroDivisionError: division by zero"),
        (faulty(start=lambda _: None), "the start returned NoneType, not Count"),
        (faulty(meta=lambda c: c.missing), 'the Gate of state "waits" raised AttributeError'),
        (faulty(meta=lambda c: float("nan")), 'the Gate of state "waits" raised ValueError'),
        (faulty(gate=lambda c: "a/b"), "the Gate of state \"waits\" has the id 'a/b'"),
    ],
)
def test_a_start_that_fails_is_a_run_with_a_fault(
    machine: BuiltMachine[Any, Any, Any], text: str
) -> None:
    step = machine.start(None, "run-1")

    assert step.snapshot.status == "error"
    assert step.snapshot.fault is not None
    assert step.snapshot.fault.startswith(text)
    assert step.commands == ()
    view = machine.view(step.snapshot)
    assert (view.value, view.context) == ({}, None)
    assert machine.load(machine.dump(step.snapshot)) == step.snapshot
    with pytest.raises(EventRefused) as refused:
        machine.step(step.snapshot, GateEvent(gate="waits", name="go", payload={"to": "x"}))
    assert refused.value.code == 404


def test_an_output_of_another_type_is_a_fault() -> None:
    machine = faulty(output=lambda c: "many")
    step = machine.start(None, "run-1")

    step = machine.step(step.snapshot, GateEvent(gate="waits", name="go", payload={"to": "x"}))

    assert step.snapshot.fault is not None
    assert step.snapshot.fault.startswith('the output of final state "end" raised ValidationError')
    assert "many" not in step.snapshot.fault


class Loose(Context):
    seen: Any = None
    items: list[str] = Field(default_factory=list)


def loose(value: Any) -> BuiltMachine[Any, Loose, None]:
    m = Machine("loose", context=Loose, start=lambda _: Loose())
    waits = m.state("waits", initial=True)
    waits.gate()
    waits.on(Go, assign=lambda c, _: c.set(seen=value))
    return m.build()


@pytest.mark.parametrize("value", [(1, 2), timedelta(days=1), float("inf"), {1: 2}, object()])
def test_a_context_that_json_would_change_is_a_fault(value: Any) -> None:
    machine = loose(value)
    step = machine.start(None, "run-1")

    step = machine.step(step.snapshot, GateEvent(gate="waits", name="go", payload={"to": "x"}))

    assert step.snapshot.status == "error"
    assert step.snapshot.fault is not None
    assert "the context Loose" in step.snapshot.fault
    assert step.snapshot.context_json == '{"seen":null,"items":[]}'


class Remembering(Context):
    n: int = 0
    value: Any = None

    @functools.cached_property
    def double(self) -> int:
        return self.n * 2


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"n": 2}, None),
        (
            {"value": (1,)},
            "the context Remembering does not come back from JSON as it was: value",
        ),
        ({"m": 2, "k": 3}, "the context Remembering has no field 'm', 'k'"),
    ],
)
def test_what_is_no_field_of_a_context_is_a_fault_but_for_what_it_remembers(
    changes: dict[str, Any], fault: str | None
) -> None:
    def change(context: Remembering) -> Remembering:
        changed = context.model_copy(update=changes)
        assert changed.double == changed.n * 2
        return changed

    m = Machine("remembering", context=Remembering, start=lambda _: Remembering())
    m.state("only", initial=True).entry(assign=change)

    assert m.build().start({}, "r").snapshot.fault == fault


def test_a_list_that_an_assign_changes_in_place_is_written() -> None:
    def append(c: Loose, e: Go) -> Loose:
        c.items.append(e.to)
        return c

    m = Machine("loose", context=Loose, start=lambda _: Loose())
    waits = m.state("waits", initial=True)
    waits.gate()
    waits.on(Go, assign=append)
    machine = m.build()
    event = GateEvent(gate="waits", name="go", payload={"to": "x"})
    step = machine.start(None, "run-1")

    step = machine.step(step.snapshot, event)
    again = machine.step(machine.load(machine.dump(step.snapshot)), event)

    assert json.loads(step.snapshot.context_json)["items"] == ["x"]
    assert json.loads(again.snapshot.context_json)["items"] == ["x", "x"]


def test_a_task_output_that_does_not_fit_is_a_failure_of_the_task() -> None:
    machine = MACHINES["ticket"]
    step = machine.start({"ticket": "T-1"}, "run-1")
    step = machine.step(step.snapshot, TaskDone(key="working.coding#2:task.code", output="p"))

    step = machine.step(step.snapshot, TaskDone(key="working.checking#3:task.check", output="?"))

    assert machine.view(step.snapshot).value == {"working": "coding"}
    context = json.loads(step.snapshot.context_json)
    assert context["log"][-1].startswith("its output: ValidationError: bool: Input should be a")


def test_two_gates_with_one_id_cannot_be_open_at_once() -> None:
    m = Machine("twice", context=Count, start=lambda _: Count())
    outer = m.state("outer", initial=True)
    inner = outer.state("inner", initial=True)
    outer.on(Go, to=inner)
    outer.gate(gate=lambda _: "same")
    inner.gate(gate=lambda _: "same")

    step = m.build().start(None, "run-1")

    assert step.snapshot.fault is not None
    assert 'has the id "same", and a Gate with that id is open' in step.snapshot.fault


def test_what_a_state_invokes_may_fail_to_start() -> None:
    m = Machine("late", context=Count, start=lambda _: Count())
    one, two = m.state("one", initial=True), m.state("two")
    one.gate().on(Go, to=two)
    one.after(timedelta(seconds=1), to=two)
    two.run(m.task("code", code), lambda c: str(1 // c.n))
    machine = m.build()
    go = GateEvent(gate="one", name="go", payload={"to": "two"})

    step = machine.step(machine.start(None, "run-1").snapshot, go)

    assert step.snapshot.fault == (
        'the input of task "code" in state "two" raised ZeroDivisionError: integer division or '
        "modulo by zero"
    )
    # The run stays where it was, and what was live there is stopped.
    assert machine.view(step.snapshot).value == "one"
    assert [one.model_dump() for one in step.commands] == [
        {"kind": "disarm_timer", "key": "one#1:after.0"}
    ]


def test_a_delay_may_fail() -> None:
    m = Machine("late", context=Count, start=lambda _: Count())
    m.state("waits", initial=True).after(lambda c: timedelta(seconds=1 // c.n))

    step = m.build().start(None, "run-1")

    assert step.snapshot.fault is not None
    assert step.snapshot.fault.startswith(
        'the delay of .after(…) in state "waits" raised ZeroDivisionError'
    )


def test_a_negative_delay_is_a_fault() -> None:
    m = Machine("late", context=Count, start=lambda _: Count(n=-1))
    waits = m.state("waits", initial=True)
    waits.after(lambda c: timedelta(seconds=c.n), to=m.final("end"))

    step = m.build().start(None, "run-1")

    assert step.snapshot.fault == 'the delay of .after(…) in state "waits" is negative'


def test_a_delay_that_is_a_number_is_a_fault() -> None:
    m = Machine("late", context=Count, start=lambda _: Count())
    waits = m.state("waits", initial=True)
    waits.after(cast("Any", lambda c: 3), to=m.final("end"))

    step = m.build().start(None, "run-1")

    assert step.snapshot.fault == (
        'the delay of .after(…) in state "waits" returned int, not timedelta'
    )


def test_a_guard_that_is_no_bool_is_a_fault() -> None:
    m = Machine("maybe", context=Count, start=lambda _: Count())
    waits = m.state("waits", initial=True)
    waits.gate()
    waits.on(Go, guard=lambda c, e: e.to, assign=lambda c, _: c)  # type: ignore[arg-type, return-value]
    machine = m.build()

    step = machine.step(
        machine.start(None, "run-1").snapshot,
        GateEvent(gate="waits", name="go", payload={"to": "x"}),
    )

    assert step.snapshot.fault == 'the guard of state "waits" on "go" returned str, not bool'


def test_user_code_that_exits_is_a_fault_too() -> None:
    def leave(_: object) -> Count:
        raise SystemExit(3)

    m = Machine("leaves", context=Count, start=leave)
    m.state("waits", initial=True)

    assert m.build().start(None, "run-1").snapshot.fault == "the start raised SystemExit: 3"


def test_an_emit_that_is_no_message_is_a_fault() -> None:
    m = Machine("tells", context=Count, start=lambda _: Count())
    waits = m.state("waits", initial=True)
    waits.gate()
    waits.on(Go, emit=lambda c, e: e)  # type: ignore[arg-type, return-value]
    machine = m.build()

    step = machine.step(
        machine.start(None, "run-1").snapshot,
        GateEvent(gate="waits", name="go", payload={"to": "x"}),
    )

    assert step.snapshot.fault == ('the emit of state "waits" on "go" returned Go, not a Message')


@pytest.mark.parametrize(
    "key",
    ["", "review", "review#5", "review#x:after.0", "nowhere#1:task.code", "working#1:other.0"],
)
def test_a_key_that_is_none_is_ignored(key: str) -> None:
    machine = MACHINES["ticket"]
    snapshot = machine.start({"ticket": "T-1"}, "run-1").snapshot

    for event in (TaskDone(key=key), TaskFailed(key=key, reason="x"), TimerFired(key=key)):
        assert machine.step(snapshot, event).snapshot is snapshot


def test_a_key_of_another_kind_is_ignored() -> None:
    machine = MACHINES["ticket"]
    snapshot = machine.start({"ticket": "T-1"}, "run-1").snapshot

    assert machine.step(snapshot, TimerFired(key="working.coding#2:task.code")).snapshot is snapshot
    assert machine.step(snapshot, TaskDone(key="working#1:after.0")).snapshot is snapshot


def test_equal_snapshots_are_equal_without_their_decoded_context() -> None:
    snapshot = MACHINES["ticket"].start({"ticket": "T-1"}, "run-1").snapshot

    assert snapshot == snapshot._replace(context=None)
    assert snapshot != snapshot._replace(context_json="null")


def test_a_snapshot_that_is_kept_is_read_again_from_its_text() -> None:
    machine = MACHINES["ticket"]
    snapshot = machine.start({"ticket": "T-1"}, "run-1").snapshot
    m = Machine("parent", context=Count, start=lambda _: Count())
    m.state("hosting", initial=True).invoke(m.child("paths", MACHINES["paths"]))
    parent = m.build()
    around = parent.start(None, "run-1").snapshot

    for chart, kept in ((machine.chart, snapshot), (parent.chart, around)):
        again = read_again(chart, kept)

        assert again == kept
        assert again.context == kept.context
        assert again.context is not kept.context
    (child,) = read_again(parent.chart, around).children.values()
    assert child.context is not next(iter(around.children.values())).context
    assert read_again(machine.chart, snapshot._replace(context=None)).context is None
