"""What is no Machine: every refusal with its whole text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from jr2 import (
    OPEN,
    AgentEvent,
    BuildRefused,
    Command,
    Context,
    Event,
    ExternalEvent,
    HttpFile,
    Machine,
    Push,
    Turn,
)


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


def bad_agent(m: Machine[Any, Ctx, None]) -> None:
    m.agent("coder", model="qwen", instructions=" ", description=3, workspace="all")  # type: ignore[arg-type]


def bad_dial(m: Machine[Any, Ctx, None]) -> None:
    m.agent("coder", model=OPEN, instructions="x", thinking_level="huge")  # type: ignore[arg-type]


def bad_agent_name(m: Machine[Any, Ctx, None]) -> None:
    m.agent("the coder", model=OPEN, instructions="x")


def two_agents(m: Machine[Any, Ctx, None]) -> None:
    m.agent("coder", model=OPEN, instructions="x")
    m.agent("coder", model=OPEN, instructions="x")


def one_name_for_two_kinds(m: Machine[Any, Ctx, None]) -> None:
    m.agent("x", model=OPEN, instructions="x")
    m.task("x", nothing)
    m.effect("x", Push(repo="app"))


def bad_effect(m: Machine[Any, Ctx, None]) -> None:
    m.effect("tests", Command(argv="make"))


def effect_that_is_none(m: Machine[Any, Ctx, None]) -> None:
    m.effect("tests", ["make"])  # type: ignore[arg-type]


def foreign_agent(m: Machine[Any, Ctx, None]) -> None:
    coder = machine().agent("coder", model=OPEN, instructions="x")
    m.state("a", initial=True).on(Finish).turn(coder, lambda c: Turn(prompt="x"))


def bare_agent(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).turn("coder", lambda c: Turn(prompt="x"))  # type: ignore[arg-type]


def turn_that_is_none(m: Machine[Any, Ctx, None]) -> None:
    coder = m.agent("coder", model=OPEN, instructions="x")
    m.state("a", initial=True).on(Finish).turn(coder, Turn(prompt="x"))  # type: ignore[arg-type]


def buried_picks(m: Machine[Any, Ctx, None]) -> None:
    coder = m.agent("coder", model=OPEN, instructions="x")
    a = m.state("a", initial=True).turn(coder, lambda c: Turn(prompt="x")).on(Approve)
    a.state("b", initial=True).on(Finish)
    a.state("c").on(Answer)


def foreign_effect(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).run(machine().effect("ship", Push(repo="app")))


def effect_without_input(m: Machine[Any, Ctx, None]) -> None:
    m.state("a", initial=True).run(m.effect("up", HttpFile(url="https://h")))


def reserved_events(m: Machine[Any, Ctx, None]) -> None:
    class Later(Event, semantics="deferred", output=Ctx):
        pass

    class Asked(Event, semantics="poll"):
        pass

    m.state("a", initial=True).on(Later).on(Asked)


REFUSALS = [
    (
        bad_agent,
        'machine "m": has an Agent "coder" with the model \'qwen\', which is not '
        '"<provider>/<model id>"\nmachine "m": has an Agent "coder" with no instructions\n'
        'machine "m": has an Agent "coder" with the description 3, which is no text\n'
        'machine "m": has an Agent "coder" with workspace=\'all\', which is not one of "write", '
        '"read", "none"',
    ),
    (
        bad_dial,
        'machine "m": has an Agent "coder" with thinking_level=\'huge\', which is not one of "off", '
        '"minimal", "low", "medium", "high", "xhigh"',
    ),
    (
        bad_agent_name,
        "machine \"m\": has an Agent 'the coder': a name has letters, digits, _ and - only",
    ),
    (two_agents, 'machine "m": has two Agents "coder"'),
    (
        one_name_for_two_kinds,
        'machine "m": has an Agent and a task called "x"\n'
        'machine "m": has an Agent and an Effect called "x"',
    ),
    (
        bad_effect,
        'machine "m": has an Effect "tests" with argv=\'make\': no shell reads it, so give a list '
        "of texts",
    ),
    (
        effect_that_is_none,
        'machine "m": has an Effect "tests" with [\'make\']: give a Command, an Http, an '
        "HttpFile, a Push or a Dispatch",
    ),
    (foreign_agent, 'machine "m": state "a" asks the Agent "coder" of another machine'),
    (bare_agent, 'machine "m": state "a" asks \'coder\': give what .agent(…) returned'),
    (
        turn_that_is_none,
        f'machine "m": state "a" asks the Agent "coder" {Turn(prompt="x")!r}: give a function of '
        "the context that returns a Turn",
    ),
    (
        buried_picks,
        'machine "m": state "a" asks the Agent "coder", which could pick nothing here: only states '
        "inside handle finish, answer — handle them on this state, or ask the Agent on the state "
        "that does",
    ),
    (foreign_effect, 'machine "m": state "a" runs the Effect "ship" of another machine'),
    (
        effect_without_input,
        'machine "m": state "a" runs the Effect "up" without its HttpFileInput',
    ),
    (
        reserved_events,
        'machine "m": handles the event "later" with semantics="deferred", which is reserved and '
        'not built yet: only "ack" is delivered\nmachine "m": handles the event "asked" with '
        'semantics="poll", which is reserved and not built yet: only "ack" is delivered',
    ),
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
