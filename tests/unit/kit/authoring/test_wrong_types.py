"""What is given in the place of something else is said by the build, whatever it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel, field_validator, model_validator

from jr2 import (
    BuildRefused,
    BuiltMachine,
    Command,
    Context,
    ExternalEvent,
    InputRefused,
    Machine,
    Next,
    Source,
    pool,
)
from jr2.kernel import EventRefused
from jr2.testing import TooLarge, start


class Go(ExternalEvent):
    """Go on."""


class Ctx(Context):
    n: int = 0
    text: str = ""


async def work(n: int) -> int:
    return n


def leaf() -> BuiltMachine[Any, Context, None]:
    m = Machine("leaf")
    m.state("a", initial=True)
    return m.build()


# Each statement is wrong in one argument; `m` is the Machine, `a` its first state.
WRONG: list[tuple[Callable[[Any, Any], object], str]] = [
    (
        lambda m, a: m.state("b", initial="c"),
        "has the state \"b\" with initial='c', which is not True or False",
    ),
    (
        lambda m, a: (a.state("b", initial=True), a.history(deep="b")),
        "state \"a.history\" has deep='b', which is not True or False",
    ),
    (lambda m, a: a.on(Go, guard=True), 'state "a" has guard=True on "go": give a function'),
    (lambda m, a: a.on(Go, assign=3), 'state "a" has assign=3 on "go": give a function'),
    (lambda m, a: a.on(Go, emit="x"), 'state "a" has emit=\'x\' on "go": give a function'),
    (lambda m, a: a.on(Go, raise_=3), 'state "a" has raise_=3 on "go": give a function'),
    (
        lambda m, a: a.always(to=a, guard=3),
        'state "a" has guard=3 on "": give a function',
    ),
    (
        lambda m, a: a.after(timedelta(1), assign=3),
        'state "a" has assign=3 on "after.a.0": give a function',
    ),
    (lambda m, a: a.entry(assign=3), 'state "a" has assign=3 at its entry: give a function'),
    (lambda m, a: a.exit(emit=3), 'state "a" has emit=3 at its exit: give a function'),
    (
        lambda m, a: m.final("f").entry(emit=3),
        'state "f" has emit=3 at its entry: give a function',
    ),
    (lambda m, a: m.final("f", 3), 'state "f" has output=3 as a final state: give a function'),
    (
        lambda m, a: a.state("b", initial=True) and a.final("f", 3),
        'state "a.f" has output=3 as a final state: give a function',
    ),
    (
        lambda m, a: a.always(),
        'state "a" has .always(…) with neither to= nor guard=, which would be taken without end',
    ),
    (
        lambda m, a: a.on(Go).gate(meta={"a": 1}),
        "state \"a\" has meta={'a': 1} at its Gate: give a function",
    ),
    (
        lambda m, a: a.on(Go).gate(gate=3),
        'state "a" has a Gate 3: its id is a text, or a function',
    ),
    (
        lambda m, a: a.on(Go).gate(accepts=Go),
        f'state "a" has a Gate with accepts={Go!r}: give a tuple of event classes',
    ),
    (
        lambda m, a: a.on(Go).gate(accepts=("go",)),
        "state \"a\" has a Gate that accepts 'go', which is no event class",
    ),
    (
        lambda m, a: a.history(default="a"),
        "state \"a.history\" has the default 'a', which is no state of a Machine",
    ),
    (
        lambda m, a: a.run(m.task("t", work), 3),
        'state "a" gives the input 3 to the task "t": give a function of the context',
    ),
    (
        lambda m, a: a.run(m.effect("e", Command(argv=["x"])), 3),
        'state "a" gives the input 3 to the Effect "e": give a function of the context',
    ),
    (
        lambda m, a: a.invoke(leaf(), 3),
        'state "a" gives the input 3 to a Machine: give a function of the context',
    ),
    (
        lambda m, a: m.effect("e", Command(argv=["x", "a\0b"])),
        'has an Effect "e" with an argv with the character NUL, which no program can be given',
    ),
]


@pytest.mark.parametrize(("wrong", "text"), WRONG, ids=[text for _, text in WRONG])
def test_a_statement_with_a_wrong_argument_is_refused(
    wrong: Callable[[Any, Any], object], text: str
) -> None:
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    wrong(m, m.state("a", initial=True))

    with pytest.raises(BuildRefused) as refused:
        m.build()

    assert refused.value.problems == (f'machine "m": {text}',)


def test_a_start_that_is_no_function_and_an_output_that_is_no_type_are_refused() -> None:
    made: Any = Machine
    with pytest.raises(BuildRefused, match=r'^machine "m": has start=3: give a function that mak'):
        made("m", context=Ctx, start=3)
    with pytest.raises(
        BuildRefused, match=r'^machine "m": has output=3, which is no type with a J'
    ):
        made("m", output=3)


def test_one_event_that_a_gate_lists_twice_is_accepted_once() -> None:
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    m.state("a", initial=True).on(Go).gate(accepts=(Go, Go))

    assert m.build().document()["states"][0]["gate"] == {"id": "a", "accepts": ["go"]}


async def none_left(active: tuple[str, ...]) -> Next[Ctx] | None:
    return None


def test_a_pool_says_each_argument_that_is_wrong_at_once() -> None:
    made: Any = pool
    with pytest.raises(BuildRefused) as refused:
        made(
            leaf(),
            door=3,
            source=Source(next=none_left),
            item_id="key",
            item_input=3,
            cap=0,
            on_drained="end",
        )

    assert refused.value.problems == (
        'pool "pool" has the door 3: a door is a pydantic model',
        "pool \"pool\" has item_id='key': give a function",
        'pool "pool" has item_input=3: give a function',
        'pool "pool" has on_drained=\'end\', which is not one of "final", "wait"',
        'pool "pool" would wait for ever once its Source has no item: give it wake= or '
        'poll_every=, or on_drained="final"',
        'pool "pool" has cap=0: it is a number from 1 on, or a function of the door',
    )


def test_machines_composed_deeper_than_a_snapshot_can_be_read_are_refused() -> None:
    def around(inner: BuiltMachine[Any, Any, None], number: int) -> BuiltMachine[Any, Any, None]:
        m = Machine(f"m{number}")
        m.state("a", initial=True).invoke(inner)
        return m.build()

    machine = leaf()
    for number in range(2, 101):
        machine = around(machine, number)
    run = start(machine)
    assert run.fault is None
    assert len(run.children) == 1

    with pytest.raises(BuildRefused) as refused:
        around(machine, 101)
    assert str(refused.value) == (
        'machine "m101": is 101 states deep with the Machines that it composes, and a snapshot of '
        "more than 100 is not read back"
    )


class Broken(ExternalEvent):
    text: str

    @field_validator("text")
    @classmethod
    def check(cls, text: str) -> str:
        raise RuntimeError(f"secret {text}")


class BrokenDoor(BaseModel):
    text: str

    @model_validator(mode="after")
    def check(self) -> BrokenDoor:
        raise ZeroDivisionError(self.text)


def test_a_validator_that_raises_something_else_refuses_the_input_without_its_value() -> None:
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    m.state("a", initial=True).gate().on(Broken, to=m.final("b"))
    run = start(m.build())

    with pytest.raises(EventRefused) as refused:
        run.send(Broken.model_construct(text="hunter2"))
    assert "Broken raised RuntimeError while it was read" in str(refused.value)
    assert "hunter2" not in str(refused.value)
    assert (run.status, run.value) == ("active", "a")

    d = Machine("d", door=BrokenDoor)
    d.state("a", initial=True)
    with pytest.raises(InputRefused, match="BrokenDoor raised ZeroDivisionError while it was"):
        start(d.build(), {"text": "hunter2"})


def test_the_desk_says_what_is_larger_than_an_orchestrator_keeps() -> None:
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    m.state("a", initial=True).gate().on(Go, assign=lambda c, e: c.set(text="x" * 2**20))
    run = start(m.build())

    with pytest.raises(
        TooLarge, match=r"^the run is 10\d{5} bytes, and no Orchestrator keeps more"
    ):
        run.send(Go())


def test_a_timer_that_the_clock_cannot_reach_waits() -> None:
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    m.state("a", initial=True).after(timedelta.max, to=m.final("b"))
    run = start(m.build())

    run.advance(timedelta(days=36_500))
    assert run.value == "a"


@pytest.mark.parametrize("slot", [["list"], {}, 3, None])
def test_a_slot_that_is_no_text_is_said_by_the_build(slot: Any) -> None:
    async def work() -> None: ...

    m = Machine("m")
    m.state("open", initial=True)
    m.task(slot, work)
    m.agent(slot, model="p/m", instructions="x")
    m.child(slot, leaf())
    with pytest.raises(BuildRefused) as refused:
        m.build()
    assert str(refused.value).count(f"{slot!r}: a name has letters, digits, _ and - only") == 3


def test_an_agent_that_is_no_text_is_said_by_the_build() -> None:
    m = Machine("m")
    m.state("open", initial=True)
    m.agent("a", model="p/\ud800", instructions="\ud800", description="\ud800")
    with pytest.raises(BuildRefused) as refused:
        m.build()
    assert str(refused.value) == "\n".join(
        f'machine "m": has an Agent "a" with {what}= that holds half of a surrogate pair, which is '
        "no text"
        for what in ("model", "instructions", "description")
    )


def test_an_event_whose_name_is_no_text_is_refused() -> None:
    name: Any = 3
    with pytest.raises(BuildRefused, match="Three has the name 3: a name has"):

        class Three(ExternalEvent, name=name):
            """Three."""


def test_an_event_that_has_no_json_form_is_told_on_the_desk() -> None:
    class Raw(ExternalEvent):
        data: bytes

    m = Machine("m")
    waiting = m.state("waiting", initial=True)
    waiting.gate()
    waiting.on(Raw, to=m.final("done"))
    run = start(m.build())
    with pytest.raises(TypeError, match="has no JSON form"):
        run.send(Raw(data=b"\xff"))
