"""Child Machines: they run inside their parent's run, and their end is an event of the parent."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any, cast

import pytest
from pydantic import BaseModel

from jr2 import (
    BuildRefused,
    BuiltMachine,
    Context,
    EventRefused,
    ExternalEvent,
    Machine,
    Message,
    Start,
    kernel,
)
from jr2.chart import Chart, Invocation, Node, Transition
from jr2.host_wire import GateEvent, TaskDone, TaskFailed, TimerFired
from jr2.snapshot import SnapshotError
from tests.unit.kit.kernel.runs import Run


class Door(BaseModel):
    name: str


class Out(BaseModel):
    text: str


class Ctx(Context):
    name: str = ""
    log: tuple[str, ...] = ()

    def wrote(self, line: str) -> Ctx:
        return self.set(log=(*self.log, line))


class Answer(ExternalEvent):
    text: str


class Leave(ExternalEvent):
    pass


class Told(Message):
    text: str


async def greet(name: str) -> str:
    return f"hello {name}"


def greeter(fails: bool = False) -> BuiltMachine[Door, Ctx, Out]:
    m = Machine(
        "greeter", door=Door, context=Ctx, output=Out, start=lambda i: Ctx(name=i.door.name)
    )
    task = m.task("greet", greet)
    working, asking = m.state("working", initial=True), m.state("asking")
    end = m.final("end", lambda c: Out(text=c.log[-1]))
    working.run(task, lambda c: c.name).done(to=asking, assign=lambda c, text: c.wrote(text))
    working.after(timedelta(seconds=5), to=asking)
    asking.gate(meta=lambda c: {"name": c.name})
    asking.on(
        Answer,
        to=end,
        assign=lambda c, e: c.wrote("x" if not fails else str(1 // 0)),
        emit=lambda c, e: Told(text=e.text),
    )
    return m.build()


def parent(
    child: BuiltMachine[Door, Any, Out] | None = None, *, failed: bool = True, inline: bool = False
) -> BuiltMachine[Any, Ctx, None]:
    built = child or greeter()
    m = Machine("parent", context=Ctx, start=lambda _: Ctx())
    hosting, told = m.state("hosting", initial=True), m.state("told")
    invoked = m.child("greeter", built)
    running = hosting.invoke(built if inline else invoked, lambda c: Door(name="Ann")).done(
        to=told, assign=lambda c, out: c.wrote(out.text)
    )
    if failed:
        running.failed(to=told, assign=lambda c, error: c.wrote(error.reason))
    hosting.gate(gate="parent").on(Leave, to=told)
    return m.build()


CHILD = "hosting#1:child.greeter"


def test_a_child_runs_in_the_run_of_its_parent() -> None:
    run = Run(parent())

    assert run.value == "hosting"
    assert run.said == [
        f"start_task {CHILD}/working#1:task.greet",
        f"arm_timer {CHILD}/working#1:after.0",
    ]
    (start, _) = run.step.commands
    assert start.model_dump()["machine"] == ["greeter"]
    assert run.machine.at(["greeter"]) is run.machine.children["greeter"]
    assert run.machine.at(["greeter", "nobody"]) is None
    assert run.view.model_dump()["children"] == [
        {
            "id": "greeter",
            "path": ["greeter"],
            "src": "greeter",
            "machine": "greeter",
            "status": "active",
            "value": "working",
            "context": {"name": "Ann", "log": []},
            "children": [],
        }
    ]


def test_what_comes_back_for_a_child_is_heard_by_the_child() -> None:
    run = Run(parent()).done(f"{CHILD}/working#1:task.greet", "hello Ann")

    assert run.value == "hosting"
    assert run.said == [f"disarm_timer {CHILD}/working#1:after.0"]
    gate = run.view.gates[1]
    assert (gate.gate, gate.path) == ("greeter.asking", ["greeter", "asking"])
    assert (gate.id, gate.meta) == (f"{CHILD}/asking#2", {"name": "Ann"})


def test_the_end_of_a_child_is_an_event_of_its_parent_with_its_output() -> None:
    run = Run(parent()).done(f"{CHILD}/working#1:task.greet", "hello Ann")

    run.gate("greeter.asking", "answer", text="y")

    assert run.value == "told"
    assert run.context["log"] == ["x"]
    assert run.said == ["emit told"]
    assert run.view.children == []
    assert run.view.gates == []


def test_the_event_of_a_child_gate_is_judged_like_any() -> None:
    run = Run(parent()).done(f"{CHILD}/working#1:task.greet", "hello Ann")

    for event, code in (
        (GateEvent(gate="greeter.asking", name="leave", payload={}), 400),
        (GateEvent(gate="greeter.asking", name="answer", payload={}), 400),
        (GateEvent(gate="greeter.asking", id="asking#2", name="answer", payload={}), 412),
        (GateEvent(gate="asking", name="answer", payload={"text": "y"}), 404),
    ):
        with pytest.raises(EventRefused) as refused:
            run.send(event)
        assert refused.value.code == code
    assert "(open: parent, greeter.asking)" in refused.value.message


def test_leaving_the_state_stops_the_child() -> None:
    run = Run(parent()).gate("parent", "leave")

    assert run.value == "told"
    assert run.said == [
        f"stop_task {CHILD}/working#1:task.greet",
        f"disarm_timer {CHILD}/working#1:after.0",
    ]
    assert run.view.children == []
    late = run.step
    assert run.done(f"{CHILD}/working#1:task.greet", "late").step.snapshot == late.snapshot


def test_the_fault_of_a_child_is_the_failure_of_its_invocation() -> None:
    run = Run(parent(greeter(fails=True))).done(f"{CHILD}/working#1:task.greet", "hello Ann")

    run.gate("greeter.asking", "answer", text="y")

    assert run.value == "told"
    (text,) = run.context["log"]
    assert text.startswith('the assign of state "asking" on "answer" raised ZeroDivisionError')
    # What the child said before it failed is not said.
    assert run.said == []


def test_the_failure_of_a_task_that_the_child_does_not_take_ends_the_child() -> None:
    run = Run(parent()).failed(f"{CHILD}/working#1:task.greet", "no network")

    assert run.value == "told"
    assert run.context["log"] == [
        'task "greet" failed and no .failed(…) takes it: no network',
    ]
    assert run.said == [f"disarm_timer {CHILD}/working#1:after.0"]


def test_a_child_that_fails_without_a_route_ends_the_run() -> None:
    run = Run(parent(failed=False)).failed(f"{CHILD}/working#1:task.greet", "no network")

    assert run.view.status == "error"
    assert run.view.fault == (
        'Machine "greeter" failed and no .failed(…) takes it: task "greet" failed and no '
        ".failed(…) takes it: no network"
    )
    assert run.said == [f"disarm_timer {CHILD}/working#1:after.0"]
    # It can still be read where it stood.
    assert [child["value"] for child in run.view.model_dump()["children"]] == ["working"]
    assert run.view.gates == []


def test_a_cancel_stops_what_children_run() -> None:
    run = Run(parent())

    step = run.machine.cancel(run.step.snapshot)

    assert step.snapshot.status == "cancelled"
    assert [one.model_dump()["key"] for one in step.commands] == [
        f"{CHILD}/working#1:task.greet",
        f"{CHILD}/working#1:after.0",
    ]
    assert run.machine.cancel(step.snapshot).snapshot is step.snapshot
    assert run.machine.load(run.machine.dump(step.snapshot)) == step.snapshot
    with pytest.raises(EventRefused):
        run.machine.step(step.snapshot, GateEvent(gate="parent", name="leave", payload={}))


def test_a_machine_may_be_invoked_without_a_slot() -> None:
    run = Run(parent(inline=True))

    (start, _) = run.step.commands
    assert start.model_dump()["machine"] == ["inline:greeter"]
    assert start.model_dump()["key"] == "hosting#1:child.greeter/working#1:task.greet"
    assert run.machine.at(["inline:greeter"]) is not None
    assert run.machine.chart.children["inline:greeter"].inline


def instant(text: str | None) -> BuiltMachine[Any, Ctx, Out]:
    """A Machine that is over at its start, or broken then."""
    m = Machine("instant", context=Ctx, output=Out, start=lambda _: Ctx())
    waits = m.state("waits", initial=True)
    waits.always(to=m.final("end", lambda c: Out(text=text or str(1 // 0))))
    return m.build()


@pytest.mark.parametrize("text", ["now", None])
def test_a_child_that_is_over_at_its_start_is_heard_in_the_same_step(text: str | None) -> None:
    m = Machine("parent", context=Ctx, start=lambda _: Ctx())
    first, second, end = m.state("first", initial=True), m.state("second"), m.state("end")
    child = m.child("instant", instant(text))
    first.invoke(child).done(to=second, assign=lambda c, out: c.wrote(out.text)).failed(to=end)
    second.invoke(child).done(to=end).failed(to=end)

    run = Run(m.build())

    assert run.value == "end"
    assert run.context["log"] == ([] if text is None else ["now"])


def test_children_that_end_for_ever_are_a_fault() -> None:
    m = Machine("loop", context=Ctx, start=lambda _: Ctx())
    one, two = m.state("one", initial=True), m.state("two")
    child = m.child("instant", instant("now"))
    one.invoke(child).done(to=two)
    two.invoke(child).done(to=one)

    assert "do not come to rest" in str(Run(m.build()).view.fault)


def test_a_child_that_ended_while_its_state_was_left_is_not_heard() -> None:
    m = Machine("parent", context=Ctx, start=lambda _: Ctx())
    both, end = m.state("both", initial=True), m.state("end")
    child = m.child("instant", instant("now"))
    both.invoke(child, id="one").done(to=end, assign=lambda c, _: c.wrote("one"))
    both.invoke(child, id="two").done(to=both, assign=lambda c, _: c.wrote("two"))

    run = Run(m.build())

    assert (run.value, run.context["log"]) == ("end", ["one"])


@pytest.mark.parametrize(
    ("input", "text"),
    [
        (lambda c: Door(name=1 // 0), "ZeroDivisionError"),
        (lambda c: Ctx(), "TypeError: returned Ctx, not Door"),
        (
            lambda c: Door.model_construct(name=cast(Any, 3)),
            "ValueError: name: Input should be a valid",
        ),
    ],
)
def test_an_input_that_cannot_be_made_is_a_fault_of_the_parent(input: Any, text: str) -> None:
    m = Machine("parent", context=Ctx, start=lambda _: Ctx())
    m.state("hosting", initial=True).invoke(m.child("greeter", greeter()), input).failed()

    fault = Run(m.build()).view.fault

    assert fault is not None
    assert fault.startswith(f'the input of Machine "greeter" in state "hosting" raised {text}')


def test_a_child_without_a_door_takes_any_json() -> None:
    inner = Machine("inner", context=Ctx, start=lambda i: Ctx(name=f"{i.door} {i.run_id!r}"))
    inner.state("waits", initial=True)
    m = Machine("parent", context=Ctx, start=lambda _: Ctx())
    m.state("hosting", initial=True).invoke(
        m.child("inner", inner.build()), lambda c: {"delay": timedelta(seconds=1)}
    )

    (child,) = Run(m.build()).view.model_dump()["children"]

    # No run id reaches a child: what it needs its parent passes.
    assert child["context"]["name"] == "{'delay': 'PT1S'} ''"


def grandparent() -> BuiltMachine[Any, Ctx, None]:
    m = Machine("grandparent", context=Ctx, start=lambda _: Ctx())
    top = m.state("top", initial=True)
    top.invoke(m.child("parent", parent())).done(to=m.final("end"))
    return m.build()


def test_children_have_children() -> None:
    run = Run(grandparent())
    key = "top#1:child.parent/hosting#1:child.greeter"
    assert run.said[0] == f"start_task {key}/working#1:task.greet"
    assert run.step.commands[0].model_dump()["machine"] == ["parent", "greeter"]
    run.done(f"{key}/working#1:task.greet", "hello")

    assert [gate.gate for gate in run.view.gates] == ["parent", "parent.greeter.asking"]
    run.gate("parent.greeter.asking", "answer", text="y")

    assert [child["value"] for child in run.view.model_dump()["children"]] == ["told"]
    for late in (f"{key}/working#1:task.greet", "top#1:child.nobody/x#1:task.y"):
        assert run.machine.step(run.step.snapshot, TaskDone(key=late)).snapshot is run.step.snapshot


def test_a_child_of_another_shape_is_no_snapshot() -> None:
    machine = parent()
    data = machine.dump(Run(machine).step.snapshot)

    for old, new in ((b"child.greeter", b"child.nobody"), (b'"hosting#1', b'"nowhere#1')):
        with pytest.raises(SnapshotError, match="invokes nothing with the key"):
            machine.load(data.replace(old, new))


def test_two_gates_of_one_address_are_refused_over_the_whole_run() -> None:
    inner = Machine("inner", context=Ctx, start=lambda _: Ctx())
    inner.state("waits", initial=True).gate(gate=lambda _: "same").on(Leave)
    m = Machine("parent", context=Ctx, start=lambda _: Ctx())
    hosting = m.state("hosting", initial=True)
    hosting.gate(gate="same").on(Leave)
    hosting.invoke(m.child("inner", inner.build()))

    # The child is first, in document order of what the state has.
    assert 'has the id "same", and a Gate with that id is open' in str(Run(m.build()).view.fault)


def test_what_is_wrong_with_a_child_is_said_by_the_build() -> None:
    m = Machine("parent", context=Ctx, start=lambda _: Ctx())
    state = m.state("s", initial=True)
    other = Machine("other").child("there", greeter())
    bad: Any = "greeter"
    m.child("bad", bad)
    m.child("greeter", greeter())
    m.child("greeter", greeter())
    m.child("a b", greeter())
    state.invoke(bad)
    state.invoke(other, lambda c: Door(name="x"))
    state.invoke(greeter())
    state.invoke(greeter(), lambda c: Door(name="x"), id="a/b")

    with pytest.raises(BuildRefused) as refused:
        m.build()

    assert [problem.removeprefix('machine "parent": ') for problem in refused.value.problems] == [
        "has the child Machine \"bad\" 'greeter': give what .build() returned",
        'has two child Machines "greeter"',
        "has a child Machine 'a b': a name has letters, digits, _ and - only",
        "state \"s\" invokes 'greeter': give what .child(…) or .build() returned",
        'state "s" invokes the child Machine "there" of another machine',
        'state "s" invokes the Machine "greeter" without its Door',
        "state \"s\" has the child 'a/b': a name has letters, digits, _ and - only",
    ]


def test_two_children_of_one_name_that_may_run_at_once_are_refused() -> None:
    m = Machine("parent", context=Ctx, start=lambda _: Ctx())
    both = m.parallel("both", initial=True)
    left, right = both.state("left"), both.state("right")
    later = m.state("later")
    child = m.child("greeter", greeter())
    for state in (left, right, later):
        state.invoke(child, lambda c: Door(name="x"))

    with pytest.raises(BuildRefused) as refused:
        m.build()

    assert refused.value.problems == (
        'machine "parent": state "both.right" invokes the child "greeter", and so does state '
        '"both.left", which may be active at once: give one of them an id=',
    )


def other_kinds() -> Chart:
    """A chart with an Effect and a Sandbox, as the parts of a Machine make them."""
    common: Any = {"input": None, "encode_input": lambda v: v, "decode_output": lambda v: v}
    return Chart(
        id="kinds",
        nodes=(
            Node(index=0, kind="compound", path=(), parent=None, children=(1, 2), initial=(1,)),
            Node(
                index=1,
                kind="atomic",
                path=("one",),
                parent=0,
                invocations=(
                    Invocation(id="e", kind="effect", slot="e", done="d", failed="f", **common),
                    Invocation(
                        id="s", kind="sandbox", slot="s", done="ready", failed="lost", **common
                    ),
                ),
                transitions=(Transition(source=1, event="ready", targets=(2,)),),
            ),
            Node(index=2, kind="atomic", path=("two",), parent=0),
        ),
        context=Ctx,
        start=lambda _: Ctx(),
    )


def test_effects_and_sandboxes_start_and_stop_like_tasks() -> None:
    chart = other_kinds()
    step = kernel.start(chart, Start(door=None, run_id="run-1"))
    assert [one.model_dump() for one in step.commands] == [
        {
            "kind": kind,
            "key": f"one#1:{key}",
            "machine": [],
            "slot": slot,
            "actor": [],
            "input": None,
        }
        for kind, key, slot in (
            ("run_effect", "effect.e", "e"),
            ("start_sandbox", "sandbox.s", "s"),
        )
    ]

    step = kernel.step(chart, step.snapshot, TaskDone(key="one#1:sandbox.s"))

    assert [one.model_dump() for one in step.commands] == [
        {"kind": "stop_effect", "key": "one#1:effect.e"}
    ]
    assert [one.model_dump() for one in kernel.stop_live(chart, step.snapshot)] == []


def test_the_failure_of_an_effect_without_a_route_names_it() -> None:
    chart = other_kinds()
    step = kernel.start(chart, Start(door=None, run_id="run-1"))

    step = kernel.step(chart, step.snapshot, TaskFailed(key="one#1:effect.e", reason="no"))

    assert step.snapshot.fault == 'Effect "e" failed and no .failed(…) takes it: no'
    assert [one.model_dump() for one in step.commands] == [
        {"kind": "stop_sandbox", "key": "one#1:sandbox.s"}
    ]


def test_a_key_of_a_child_itself_is_ignored() -> None:
    run = Run(parent())

    for event in (
        TaskDone(key=CHILD),
        TimerFired(key="hosting#1:after.7"),
        TaskDone(key=CHILD + "/x"),
    ):
        assert run.machine.step(run.step.snapshot, event).snapshot is run.step.snapshot
    assert kernel.picks.find(run.machine.chart, run.step.snapshot, "nowhere#1:task.x") is None
    assert kernel.picks.find(run.machine.chart, run.step.snapshot, "hosting#1:child.no/x") is None
    lost = run.step.snapshot._replace(children={})
    assert kernel.picks.find(run.machine.chart, lost, f"{CHILD}/working#1:task.greet") is None
    gone = run.gate("parent", "leave").step.snapshot
    assert kernel.picks.find(run.machine.chart, gone, f"{CHILD}/working#1:task.greet") is None


def test_an_output_that_the_parent_cannot_read_is_a_failure() -> None:
    built = instant("now")
    broken = dataclasses.replace(built.chart, decode_output=lambda value: 1 // 0)
    built.chart = broken
    m = Machine("parent", context=Ctx, start=lambda _: Ctx())
    first, end = m.state("first", initial=True), m.state("end")
    first.invoke(m.child("instant", built)).failed(
        to=end, assign=lambda c, error: c.wrote(error.reason)
    )

    assert Run(m.build()).context["log"] == [
        "its output: ZeroDivisionError: integer division or modulo by zero"
    ]


def test_a_machine_without_output_gives_its_parent_none() -> None:
    inner = Machine("inner", context=Ctx, start=lambda _: Ctx())
    inner.state("waits", initial=True).always(to=inner.final("end"))
    m = Machine("parent", context=Ctx, start=lambda _: Ctx())
    first, end = m.state("first", initial=True), m.state("end")
    first.invoke(m.child("inner", inner.build())).done(to=end, guard=lambda _, out: out is None)

    assert Run(m.build()).value == "end"


def test_the_shape_changes_with_the_shape_of_a_child_however_deep() -> None:
    def around(*inner: BuiltMachine[Any, Any, Any]) -> BuiltMachine[Any, Any, Any]:
        m = Machine("outer", context=Ctx, start=lambda _: Ctx())
        a = m.state("a", initial=True)
        for number, one in enumerate(inner):
            a.invoke(m.child(f"c{number}", one))
        return m.build()

    def inner(state: str) -> BuiltMachine[Any, Any, Any]:
        m = Machine("inner")
        m.state(state, initial=True)
        return m.build()

    shape = around(around(inner("a"))).shape()
    assert shape == around(around(inner("a"))).shape()
    assert shape != around(around(inner("b"))).shape()


@pytest.mark.parametrize(("times", "fault"), [(999, False), (1000, True)])
def test_a_step_takes_a_thousand_transitions_and_no_more(times: int, fault: bool) -> None:
    class Count(Context):
        n: int = 0

    m = Machine("m", context=Count, start=lambda _: Count())
    counting, end = m.state("counting", initial=True), m.state("end")
    counting.always(guard=lambda c: c.n < times, assign=lambda c: c.set(n=c.n + 1))
    counting.always(to=end)

    run = Run(m.build())

    assert (run.view.fault is not None) is fault
    assert fault or run.value == "end"
