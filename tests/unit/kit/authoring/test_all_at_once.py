"""A build says all that is wrong at once; an event class says it where it is written."""

from __future__ import annotations

from typing import Any

import pytest

from jr2 import BuildRefused, Context, Event, Machine


class Ctx(Context):
    n: int = 0


def machine() -> Machine[Any, Ctx, None]:
    return Machine("m", context=Ctx, start=lambda _: Ctx())


def test_a_bad_event_name_is_refused_at_the_class() -> None:
    with pytest.raises(BuildRefused) as refused:

        class Bad(Event, name="agent.fault"):
            pass

    assert str(refused.value).endswith(
        "Bad has the name 'agent.fault': a name has letters, digits, _ and - only"
    )
    assert refused.value.printed.startswith("refusing: event class ")


def test_a_deferred_event_says_what_it_answers() -> None:
    with pytest.raises(BuildRefused, match='Bad has semantics="deferred" and no output='):

        class Bad(Event, semantics="deferred"):
            pass


def test_semantics_that_there_are_not_are_refused() -> None:
    with pytest.raises(BuildRefused, match="has semantics='late', which is not one of ack, def"):

        class Bad(Event, semantics="late"):
            pass


def test_a_build_says_every_statement_that_is_wrong_at_once() -> None:
    m = machine()
    a = m.state("a.b", initial=True)
    a.on(Ctx).after(7, to=m.final("b"))  # type: ignore[type-var,arg-type]
    a.gate(gate="x/y")
    m.task("t", len)  # type: ignore[arg-type]
    m.agent("coder", model="qwen", instructions="x")

    with pytest.raises(BuildRefused) as refused:
        m.build()

    assert refused.value.problems == (
        "machine \"m\": has a state 'a.b': a name has letters, digits, _ and - only",
        f'machine "m": state "a.b" handles {Ctx!r}, which is no event class',
        'machine "m": state "a.b" has .after(7): a delay is a timedelta',
        'machine "m": state "a.b" has a Gate \'x/y\': its id is a text without /',
        'machine "m": task "t" is <built-in function len>: a task is an `async def` function',
        'machine "m": has an Agent "coder" with the model \'qwen\', which is not '
        '"<provider>/<model id>"',
    )
    assert str(refused.value) == "\n".join(refused.value.problems)


def test_a_build_says_every_rule_that_the_whole_machine_breaks_at_once() -> None:
    m = machine()
    a = m.state("a")
    a.gate()
    a.state("b").gate(accepts=())
    m.final("end", lambda c: None)

    with pytest.raises(BuildRefused) as refused:
        m.build()

    assert refused.value.problems == (
        'machine "m": has no initial state: give one of its states initial=True (a, end)',
        'machine "m": state "a" has no initial state: give one of its states initial=True (b)',
        'machine "m": state "a" has a Gate that accepts nothing: neither it nor a state around it '
        "handles an event that may come from outside",
        'machine "m": state "a.b" has a Gate with an empty accepts=',
        'machine "m": state "end" has an output, and the Machine declares no output=',
    )


def test_a_refused_machine_can_be_put_right_no_more() -> None:
    m = machine()
    m.state("a.b")
    with pytest.raises(BuildRefused):
        m.build()

    m.state("a", initial=True)

    with pytest.raises(BuildRefused, match=r"has a state 'a\.b'"):
        m.build()


def test_a_field_called_type_is_refused_at_the_class() -> None:
    with pytest.raises(BuildRefused, match="has a field `type`: on the wire that is the name"):

        class Bad(Event):
            type: str
