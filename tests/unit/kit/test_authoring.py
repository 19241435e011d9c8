"""Writing a Machine: what is built, and every refusal with its whole text."""

from __future__ import annotations

import asyncio
import enum
import functools
import inspect
import re
import textwrap
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ValidationError

import jr2.machine
from jr2 import (
    AgentEvent,
    BuildRefused,
    BuiltMachine,
    Context,
    Event,
    ExternalEvent,
    InputRefused,
    Machine,
    Message,
)
from jr2.accepted import shape_line
from jr2.events import event_name
from jr2.host_wire import GateEvent, TaskDone
from jr2.machine import State
from jr2.tasks import reason


class Ctx(Context):
    n: int = 0


class Approve(ExternalEvent):
    """Ship it.

    Nobody asks again.
    """


class Finish(AgentEvent):
    summary: str


class Answer(Event):
    text: str


async def double(n: int) -> int:
    return 2 * n


async def nothing() -> None:
    return None


def machine() -> Machine[Any, Ctx, None]:
    return Machine("m", context=Ctx, start=lambda _: Ctx())


# --- the examples of the documentation ------------------------------------------------------------
def examples() -> list[str]:
    text = inspect.cleandoc(jr2.machine.__doc__ or "")
    blocks = re.findall(r"(?:^    .*\n|^\n)+", text + "\n", flags=re.MULTILINE)
    return [textwrap.dedent(block) for block in blocks if "m.build()" in block]


def build_example(number: int) -> BuiltMachine[Any, Any, Any]:
    # The annotations of a task are read from its module, so the example gets one of its own.
    names: dict[str, Any] = {"__name__": f"example_{number}"}
    exec(compile(examples()[number], f"example_{number}", "exec", dont_inherit=True), names)
    built: BuiltMachine[Any, Any, Any] = names["machine"]
    return built


def test_the_documented_ping_answers() -> None:
    ping = build_example(0)
    step = ping.start({"message": "hi"}, "run-1")
    (command,) = step.commands
    assert command.kind == "start_task"

    output = asyncio.run(ping.run_task(command.slot, command.input))
    step = ping.step(step.snapshot, TaskDone(key=command.key, output=output))

    view = ping.view(step.snapshot)
    assert view.status == "done"
    assert view.output == {"reply": "pong: hi"}
    assert view.context == {"message": "hi", "reply": "pong: hi"}


def test_the_documented_gate_is_answered() -> None:
    assert len(examples()) == 2
    review = build_example(1)
    step = review.start({"ticket": "T-1"}, "run-1")

    step = review.step(
        step.snapshot, GateEvent(gate="review", name="request_changes", payload={"notes": "more"})
    )

    view = review.view(step.snapshot)
    assert view.value == "changes"
    assert view.context == {"ticket": "T-1", "notes": "more", "run": "run-1"}


# --- events ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("class_name", "name"),
    [
        ("Approve", "approve"),
        ("RequestChanges", "request_changes"),
        ("HTTPDone", "http_done"),
        ("Level2Done", "level2_done"),
        ("done", "done"),
    ],
)
def test_an_event_is_called_after_its_class(class_name: str, name: str) -> None:
    event: Any = type(class_name, (Event,), {"__module__": __name__})

    assert event_name(event) == name


def test_an_event_is_frozen_and_closed() -> None:
    event = Answer(text="x")

    with pytest.raises(ValidationError, match="frozen"):
        event.text = "y"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs"):
        Answer(text="x", more=1)  # type: ignore[call-arg]


def test_a_bad_event_name_is_refused_at_the_class() -> None:
    with pytest.raises(BuildRefused) as refused:

        class Bad(Event, name="agent.fault"):
            pass

    assert str(refused.value).endswith(
        "Bad has the name 'agent.fault': a name has letters, digits, _ and - only"
    )
    assert refused.value.printed.startswith("refusing: event class ")


def test_a_field_called_type_is_refused_at_the_class() -> None:
    with pytest.raises(BuildRefused, match="has a field `type`: on the wire that is the name"):

        class Bad(Event):
            type: str


# --- refusals -------------------------------------------------------------------------------------
def no_states(m: Machine[Any, Ctx, None]) -> None:
    pass


def no_initial(m: Machine[Any, Ctx, None]) -> None:
    m.state("a")
    m.final("b")


def no_nested_initial(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).state("b")


def two_initial(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True)
    m.state("b", initial=True)


def two_states(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True)
    m.final("a")


def bad_state_name(m: Machine[Any, Ctx, None]) -> None:
    m.state("a.b", initial=True)


def foreign_state(m: Machine[Any, Ctx, None]) -> None:
    other = Machine("other", context=Ctx, start=lambda _: Ctx())
    m.state("a", initial=True).on(Approve, to=other.state("b"))


def state_that_is_none(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).on(Approve, to="b")  # type: ignore[arg-type]


def machine_as_target(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).on(Approve, to=m)  # type: ignore[arg-type]


def event_that_is_none(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).on(Ctx, to=m.final("b"))  # type: ignore[type-var]


def two_events_of_one_name(m: Machine[Any, Ctx, None]) -> None:
    class Again(Event, name="approve"):
        pass

    a = m.state("a", initial=True)
    a.on(Approve)
    a.on(Again)


def empty_gate(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).gate().on(Finish)


def gate_without_accepts(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).on(Approve).gate(accepts=())


def gate_with_an_unhandled_event(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).on(Approve).gate(accepts=(Answer,))


def gate_with_an_agent_event(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).on(Finish).gate(accepts=(Finish,))


def two_gates(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).on(Approve).gate().gate()


def bad_gate_id(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).on(Approve).gate(gate="a/b")


def one_gate_id_twice(m: Machine[Any, Ctx, None]) -> None:
    outer = m.state("a", initial=True).on(Approve).gate(gate="x")
    outer.state("b", initial=True).gate(gate="x")


def done_of_an_atomic_state(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).done(to=m.final("b"))


def negative_delay(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).after(timedelta(seconds=-1), to=m.final("b"))


def delay_in_seconds(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).after(7, to=m.final("b"))  # type: ignore[arg-type]


def two_tasks(m: Machine[Any, Ctx, None]) -> None:
    m.task("t", double)
    m.task("t", nothing)


def bad_task_name(m: Machine[Any, Ctx, None]) -> None:
    m.task("t.1", double)


def sync_task(m: Machine[Any, Ctx, None]) -> None:
    m.task("t", len)  # type: ignore[arg-type]


def wide_task(m: Machine[Any, Ctx, None]) -> None:
    async def wide(a: int, b: int) -> int:
        return a + b

    m.task("t", wide)  # type: ignore[arg-type]


def unreadable_task(m: Machine[Any, Ctx, None]) -> None:
    class Local(BaseModel):
        n: int

    async def local(n: int) -> Local:
        return Local(n=n)

    m.task("t", local)


def foreign_task(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).run(machine().task("t", nothing))


def bare_function(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).run(nothing)  # type: ignore[call-overload]


def task_without_input(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).run(m.task("t", double))  # type: ignore[arg-type]


def task_with_an_input(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).run(m.task("t", nothing), lambda c: c.n)  # type: ignore[misc]


def output_without_a_type(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True)
    m.final("b", lambda c: None)


def built_twice(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True)
    m.build()


def changed_after_build(m: Machine[Any, Ctx, None]) -> None:
    a = m.state("a", initial=True)
    m.build()
    a.state("b")


REFUSALS = [
    (no_states, 'machine "m": has no states'),
    (
        no_initial,
        'machine "m": has no initial state: give one of its states initial=True (a, b)',
    ),
    (
        no_nested_initial,
        'machine "m": state "a" has no initial state: give one of its states initial=True (b)',
    ),
    (two_initial, 'machine "m": has two initial states, "a" and "b"'),
    (two_states, 'machine "m": has two states "a"'),
    (
        bad_state_name,
        "machine \"m\": has a state 'a.b': a name has letters, digits, _ and - only",
    ),
    (
        foreign_state,
        'machine "m": state "a" goes to state "b" of another machine, "other", on "approve"',
    ),
    (state_that_is_none, 'machine "m": state "a" leads to \'b\', which is no state of a Machine'),
    (
        machine_as_target,
        'machine "m": state "a" leads to <Machine \'m\'>, which is no state of a Machine',
    ),
    (
        event_that_is_none,
        f'machine "m": state "a" handles {Ctx!r}, which is no event class',
    ),
    (
        two_events_of_one_name,
        'machine "m": state "a" handles two event classes called "approve": Approve and '
        "two_events_of_one_name.<locals>.Again",
    ),
    (
        empty_gate,
        'machine "m": state "a" has a Gate that accepts nothing: neither it nor a state around it '
        "handles an event that may come from outside",
    ),
    (gate_without_accepts, 'machine "m": state "a" has a Gate with an empty accepts='),
    (
        gate_with_an_unhandled_event,
        'machine "m": state "a" has a Gate that accepts "answer", which it does not handle from '
        "outside (handled: approve)",
    ),
    (
        gate_with_an_agent_event,
        'machine "m": state "a" has a Gate that accepts "finish", which it does not handle from '
        "outside (handled: none)",
    ),
    (two_gates, 'machine "m": state "a" has two Gates'),
    (bad_gate_id, 'machine "m": state "a" has a Gate \'a/b\': its id is a text without /'),
    (
        one_gate_id_twice,
        'machine "m": state "a.b" has a Gate "x", and so has the state "a" around it',
    ),
    (
        done_of_an_atomic_state,
        'machine "m": state "a" has .done(…) and no states of its own, so nothing completes it: a '
        "task's .done(…) is chained to .run(…)",
    ),
    (
        negative_delay,
        'machine "m": state "a" has .after(datetime.timedelta(days=-1, seconds=86399)): a delay '
        "is not negative",
    ),
    (delay_in_seconds, 'machine "m": state "a" has .after(7): a delay is a timedelta'),
    (two_tasks, 'machine "m": has two tasks "t"'),
    (
        bad_task_name,
        "machine \"m\": has a task 't.1': a name has letters, digits, _ and - only",
    ),
    (
        sync_task,
        'machine "m": task "t" is <built-in function len>: a task is an `async def` function',
    ),
    (
        wide_task,
        'machine "m": task "t" takes 2 arguments: a task takes its input, or nothing',
    ),
    (
        unreadable_task,
        'machine "m": task "t" has annotations that cannot be read: NameError: name \'Local\' is '
        "not defined — name types of its module that JSON has a form for",
    ),
    (foreign_task, 'machine "m": state "a" runs the task "t" of another machine'),
    (
        bare_function,
        f'machine "m": state "a" runs {nothing!r}: give what .task(…) or .effect(…) returned',
    ),
    (task_without_input, 'machine "m": state "a" runs the task "t" without its input'),
    (
        task_with_an_input,
        'machine "m": state "a" gives an input to the task "t", which takes none',
    ),
    (
        output_without_a_type,
        'machine "m": state "b" has an output, and the Machine declares no output=',
    ),
    (
        built_twice,
        'machine "m": is changed after .build(): what was built would not have it',
    ),
    (
        changed_after_build,
        'machine "m": state "a" is changed after .build(): what was built would not have it',
    ),
]


@pytest.mark.parametrize(("write", "text"), [pytest.param(*r, id=r[0].__name__) for r in REFUSALS])
def test_a_machine_that_breaks_a_rule_is_refused(
    write: Callable[[Machine[Any, Ctx, None]], None], text: str
) -> None:
    def written() -> None:
        m = machine()
        write(m)
        m.build()

    with pytest.raises(BuildRefused) as refused:
        written()

    assert str(refused.value) == text
    assert refused.value.printed == f"refusing: {text}"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Machine("a b"), "a machine's id has letters, digits, _ and - only: 'a b'"),
        (
            lambda: Machine("m", door=int),
            "machine \"m\": has the door <class 'int'>: a door is a pydantic model",
        ),
        (
            lambda: Machine("m", context=BaseModel, start=lambda _: BaseModel()),  # type: ignore[type-var]
            f'machine "m": has the context {BaseModel!r}: it is no subclass of Context',
        ),
        (
            lambda: Machine("m", context=Ctx),  # type: ignore[call-overload]
            'machine "m": needs start= exactly when it has a context=',
        ),
    ],
)
def test_a_machine_of_wrong_parts_is_refused(make: Callable[[], object], text: str) -> None:
    with pytest.raises(BuildRefused) as refused:
        make()

    assert str(refused.value) == text


def test_a_final_state_without_the_declared_output_is_refused() -> None:
    m = Machine("m", output=int)
    m.state("a", initial=True)
    m.final("b")

    with pytest.raises(BuildRefused) as refused:
        m.build()

    assert str(refused.value) == (
        'machine "m": state "b" is final without an output, and the Machine declares output='
    )


class Odd(BaseModel):
    call: Callable[[], int]


class OddEvent(Event):
    call: Callable[[], int]


def test_a_door_or_event_without_a_schema_is_refused() -> None:
    m = Machine("m", door=Odd)
    m.state("a", initial=True)
    with pytest.raises(BuildRefused, match='machine "m": cannot say what the door takes: '):
        m.build()

    m2 = machine()
    m2.state("a", initial=True).on(OddEvent)
    with pytest.raises(BuildRefused, match='cannot say what the event "odd_event" takes: '):
        m2.build()


# --- what is built --------------------------------------------------------------------------------
class Door(BaseModel):
    """What to do."""

    message: str = "ping"
    due: date | None = None
    kind: str
    tags: list[str] = []


def doored() -> BuiltMachine[Door, Ctx, None]:
    m = Machine("doored", door=Door, context=Ctx, start=lambda i: Ctx(n=len(i.door.message)))
    m.state("a", initial=True)
    return m.build()


def test_a_door_applies_defaults_and_drops_what_it_does_not_know() -> None:
    step = doored().start({"kind": "x", "due": "2026-01-31", "else": 1}, "run-1")

    assert doored().view(step.snapshot).context == {"n": 4}


@pytest.mark.parametrize("given", [None, 3, [], {}, {"kind": 1}])
def test_a_door_names_what_it_takes(given: Any) -> None:
    with pytest.raises(InputRefused) as refused:
        doored().start(given, "run-1")

    assert refused.value.code == 400
    assert str(refused.value).startswith('the input of machine "doored" does not fit: ')
    assert str(refused.value).endswith(
        " — it takes {message?: string, due?: string | null, kind: string, tags?: [string]}"
    )


def test_an_input_is_never_quoted_in_a_refusal() -> None:
    with pytest.raises(InputRefused) as refused:
        doored().start({"kind": "x", "due": "CANARY"}, "run-1")

    assert "CANARY" not in str(refused.value)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    colour: Colour
    mode: Literal["fast"] = "fast"


class Wide(BaseModel):
    inner: Inner
    choice: int | Literal["a", "b"] | None = None
    anything: Any = None
    table: dict[str, int] = {}
    deep: list[list[Inner]] = []


def test_an_accepted_shape_is_one_line() -> None:
    assert shape_line(Wide) == (
        '{inner: {colour: "red" | "blue", mode?: "fast"}, choice?: integer | "a" | "b" | null, '
        "anything?: any, table?: {}, deep?: [[object]]}"
    )


def test_a_machine_without_a_door_takes_anything() -> None:
    m = Machine("raw", context=Ctx, start=lambda i: Ctx(n=len(i.door)))
    m.state("a", initial=True)
    built = m.build()

    assert built.door is None
    assert built.input_schema() is None
    assert built.view(built.start([1, 2], "run-1").snapshot).context == {"n": 2}


def test_a_context_says_which_fields_it_has() -> None:
    with pytest.raises(AttributeError, match=r"Ctx has no field 'm' \(fields: n\)"):
        Ctx().set(m=1)
    with pytest.raises(ValidationError):
        Ctx().set(n="x")
    assert Ctx().set(n=2) == Ctx(n=2)


async def shift(day: date) -> list[date]:
    return [day, day + timedelta(days=1)]


class Diary(Context):
    first: date = date(2026, 1, 31)
    days: list[date] = []  # noqa: RUF012 - pydantic copies the default


def test_a_task_keeps_its_types_over_json() -> None:
    m = Machine("m", context=Diary, start=lambda _: Diary())
    task = m.task("shift", shift)
    m.state("a", initial=True).run(task, lambda c: c.first).done(
        to=m.final("b"), assign=lambda c, days: c.set(days=days)
    )
    built = m.build()
    step = built.start(None, "run-1")
    (command,) = step.commands
    assert command.kind == "start_task"
    assert command.input == "2026-01-31"

    output = asyncio.run(built.run_task(command.slot, command.input))
    step = built.step(step.snapshot, TaskDone(key=command.key, output=output))

    assert output == ["2026-01-31", "2026-02-01"]
    assert isinstance(step.snapshot.context, Diary)
    assert step.snapshot.context.days == [date(2026, 1, 31), date(2026, 2, 1)]


def test_a_task_may_take_nothing_and_a_gate_fewer_events_than_are_handled() -> None:
    m = machine()
    a = m.state("a", initial=True)
    a.run(m.task("t", nothing)).done(to=m.final("b"))
    a.gate(accepts=(Answer,)).on(Answer).on(Approve)
    built = m.build()

    step = built.start(None, "run-1")

    assert asyncio.run(built.run_task("t", None)) is None
    (gate,) = built.view(step.snapshot).gates
    assert [event["name"] for event in gate.accepts] == ["answer"]


def test_one_task_can_run_twice_in_a_state() -> None:
    m = machine()
    task = m.task("t", double)
    a, b = m.state("a", initial=True), m.final("b")
    a.run(task, lambda c: 1).done(assign=lambda c, n: c.set(n=c.n + n))
    a.run(task, lambda c: 2).done(to=b, assign=lambda c, n: c.set(n=c.n + n))
    built = m.build()
    step = built.start(None, "run-1")
    assert [getattr(one, "key", None) for one in step.commands] == ["a#1:task.t", "a#1:task.t.1"]

    step = built.step(step.snapshot, TaskDone(key="a#1:task.t.1", output=4))

    assert built.view(step.snapshot).value == "b"
    assert [one.model_dump() for one in step.commands] == [
        {"kind": "stop_task", "key": "a#1:task.t"}
    ]


def test_a_reason_is_one_line_and_never_raises() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert reason(ValueError("no")) == "ValueError: no"
    assert reason(ValueError()) == "ValueError"
    assert reason(Silent()) == "Silent: (its text cannot be read)"
    assert reason(ValueError("\ud800")) == "ValueError: ?"


def test_a_message_is_told_by_name_and_payload() -> None:
    class Told(Message, name="told"):
        n: int

    m = machine()
    m.state("a", initial=True).gate().on(Answer, emit=lambda c, e: Told(n=len(e.text)))
    built = m.build()

    step = built.step(
        built.start(None, "run-1").snapshot,
        GateEvent(gate="a", name="answer", payload={"text": "four"}),
    )

    assert [one.model_dump() for one in step.commands] == [
        {"kind": "emit", "type": "told", "payload": {"n": 4}}
    ]


def test_a_nested_gate_is_addressed_by_its_path_and_takes_what_is_handled_around_it() -> None:
    m = machine()
    outer = m.on(Answer).state("outer", initial=True).on(Approve)
    outer.state("inner", initial=True).gate()
    built = m.build()

    (gate,) = built.view(built.start(None, "run-1").snapshot).gates

    assert (gate.gate, gate.id, gate.path) == ("outer.inner", "outer.inner#2", ["outer", "inner"])
    assert [event["name"] for event in gate.accepts] == ["approve", "answer"]
    assert gate.accepts[0]["description"] == "Ship it.\n\nNobody asks again."


# --- shape and document ---------------------------------------------------------------------------
def shaped(change: str = "") -> str:
    m = Machine("renamed" if change == "id" else "m", context=Ctx, start=lambda _: Ctx())
    task = m.task("other" if change == "slot" else "t", double)
    a = m.state("a", initial=change != "initial")
    b = m.state("b", initial=change == "initial")
    end = m.final("end")
    routes = [
        functools.partial(a.on, Approve, to=end if change != "target" else b),
        functools.partial(a.on, Answer, to=b),
    ]
    for route in reversed(routes) if change == "order" else routes:
        route(**({"guard": lambda c, e: False} if change == "guard" else {}))
    running: Any = (b if change == "moved" else a).run(task, lambda c: c.n)
    if change == "event":
        running.failed(to=end)
    else:
        running.done(to=end)
    a.after(timedelta(seconds=2 if change == "delay" else 1), to=end)
    if change == "gate":
        a.gate()
    if change == "state":
        m.state("more")
    if change == "nested":
        b.state("more", initial=True)
    return m.build().shape()


@pytest.mark.parametrize("change", ["order", "guard", "delay"])
def test_the_shape_stays_when_only_behaviour_changes(change: str) -> None:
    assert shaped(change) == shaped()


@pytest.mark.parametrize(
    "change",
    ["id", "slot", "initial", "target", "moved", "event", "gate", "state", "nested"],
)
def test_the_shape_changes_with_what_a_snapshot_needs(change: str) -> None:
    assert shaped(change) != shaped()


def test_the_shape_is_twelve_hex_digits_and_the_same_in_every_process() -> None:
    assert re.fullmatch(r"[0-9a-f]{12}", shaped())
    assert shaped() == "055886ab020b"


def test_the_document_is_the_structure_and_nothing_of_a_run() -> None:
    m = machine()
    task = m.task("t", double)
    a, end = m.state("a", initial=True), m.final("end")
    inner = a.state("inner", initial=True)
    inner.run(task, lambda c: c.n).done(to=end, guard=lambda c, _: c.n > 0)
    a.gate().on(Approve, to=end)

    assert m.build().document() == {
        "machine": "m",
        "initial": "a",
        "on": [],
        "states": [
            {
                "key": "a",
                "id": "a",
                "type": "compound",
                "on": [{"event": "approve", "targets": ["end"], "guarded": False}],
                "invokes": [],
                "gate": {"id": "a", "accepts": ["approve"]},
                "initial": "inner",
                "states": [
                    {
                        "key": "inner",
                        "id": "a.inner",
                        "type": "atomic",
                        "on": [
                            {
                                "event": "done.task.a.inner.t",
                                "targets": ["end"],
                                "guarded": True,
                            }
                        ],
                        "invokes": [{"id": "t", "src": "t", "kind": "task"}],
                    }
                ],
            },
            {"key": "end", "id": "end", "type": "final", "on": [], "invokes": []},
        ],
        "events": [
            {
                "name": "approve",
                "description": "Ship it.\n\nNobody asks again.",
                "input": {
                    "additionalProperties": False,
                    "description": "Ship it.\n\nNobody asks again.",
                    "properties": {},
                    "title": "Approve",
                    "type": "object",
                },
                "audience": "external",
            }
        ],
        "opaqueStates": [],
    }


def test_a_handle_says_what_it_is() -> None:
    state: State[Ctx] = machine().state("a")

    assert repr(state) == "<State 'a' of machine 'm'>"
    assert repr(doored()) == "<BuiltMachine 'doored'>"
