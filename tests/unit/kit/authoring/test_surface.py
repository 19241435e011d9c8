"""Writing a Machine: what is built, and what it does."""

from __future__ import annotations

import asyncio
import enum
import functools
import inspect
import re
import textwrap
from datetime import date, timedelta
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ValidationError

import jr2.machine
from jr2 import (
    AgentEvent,
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
    assert shaped() == "1515f1232dd9"


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
        "machines": {},
        "opaqueStates": [],
    }


def test_a_handle_says_what_it_is() -> None:
    state: State[Ctx] = machine().state("a")

    assert repr(state) == "<State 'a' of machine 'm'>"
    assert repr(doored()) == "<BuiltMachine 'doored'>"
