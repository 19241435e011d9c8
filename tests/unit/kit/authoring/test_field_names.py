"""A field that `.set(…)` names and that there is not is refused by the build, where it can be seen."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from jr2 import BuildRefused, BuiltMachine, Context, ExternalEvent, Machine
from jr2.testing import start


class Go(ExternalEvent):
    """Go on."""

    text: str = ""


class Ctx(Context):
    notes: str = ""
    rounds: int = 0


class Other(Context):
    other: int = 0


Assign = Callable[[Ctx, Go], Ctx]


def with_assign(assign: Assign) -> BuiltMachine[Any, Ctx, None]:
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    m.state("a", initial=True).gate().on(Go, assign=assign)
    return m.build()


def fault_of(machine: BuiltMachine[Any, Ctx, None]) -> str | None:
    run = start(machine)
    run.send(Go())
    return run.fault


def line(function: Callable[..., Any], below: int = 0) -> str:
    return f"authoring/test_field_names.py line {function.__code__.co_firstlineno + below}"


def refused(assign: Assign) -> tuple[str, ...]:
    with pytest.raises(BuildRefused) as raised:
        with_assign(assign)
    return raised.value.problems


def in_a_def(context: Ctx, event: Go) -> Ctx:
    if event.text:
        return context.set(
            notes=str(event.text, **{"encoding": "x"}),
            round=context.rounds + 1,
        )
    return context


def with_a_comprehension(context: Ctx, event: Go) -> Ctx:
    return context.set(note="".join(one for one in event.text if one != context.notes))


def test_a_lambda_that_misspells_a_field_is_refused_with_line_and_nearest_name() -> None:
    wrong: Assign = lambda c, e: c.set(note=e.text)  # noqa: E731

    assert refused(wrong) == (
        f'machine "m": state "a" sets a field on "go" in {line(wrong)}: Ctx has no field \'note\' — '
        "did you mean 'notes'? (fields: notes, rounds)",
    )


def test_a_function_is_read_like_a_lambda() -> None:
    assert refused(in_a_def) == (
        f'machine "m": state "a" sets a field on "go" in {line(in_a_def, 2)}: Ctx has no field '
        "'round' — did you mean 'rounds'? (fields: notes, rounds)",
    )
    assert "no field 'note'" in refused(with_a_comprehension)[0]


def test_two_lambdas_of_one_line_are_told_apart() -> None:
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    n = Machine("n", context=Other, start=lambda _: Other())
    a, b = m.state("a", initial=True), n.state("b", initial=True)
    one, two = (lambda c, e: c.set(notes="é", rounds=1)), (lambda c, e: c.set(other=1, notes="é"))
    a.on(Go, assign=one)
    b.on(Go, assign=two)

    m.build()
    with pytest.raises(BuildRefused) as raised:
        n.build()
    assert [problem.partition(": Other")[2] for problem in raised.value.problems] == [
        " has no field 'notes' (fields: other)"
    ]


def test_each_place_of_a_function_is_read_and_one_function_once() -> None:
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    a = m.state("a", initial=True)
    a.entry(assign=lambda c: c.set(a=1)).exit(assign=lambda c: c.set(b=1))
    a.always(guard=lambda c: False, assign=lambda c: c.set(c=1))
    a.on(Go, assign=in_a_def)
    a.state("b", initial=True).on(Go, assign=in_a_def)

    with pytest.raises(BuildRefused) as raised:
        m.build()

    assert [problem.partition(" in authoring/")[0] for problem in raised.value.problems] == [
        'machine "m": state "a" sets a field on ""',
        'machine "m": state "a" sets a field on "go"',
        'machine "m": state "a" sets a field at its entry',
        'machine "m": state "a" sets a field at its exit',
    ]


def test_a_method_of_the_context_is_read_too() -> None:
    class Counting(Context):
        rounds: int = 0

        def again(self) -> Counting:
            return self.set(ruonds=self.rounds + 1)

    m = Machine("m", context=Counting, start=lambda _: Counting())
    m.state("a", initial=True).on(Go, assign=lambda c, e: c.again())

    with pytest.raises(BuildRefused, match="has a context that sets a field of its own in") as said:
        m.build()
    assert "Counting has no field 'ruonds' — did you mean 'rounds'?" in str(said.value)


class Inner(Context):
    deep: int = 0


class Outer(Context):
    rounds: int = 0
    inner: Inner = Inner()
    other: Inner | None = None
    several: Inner | Ctx = Inner()

    def again(self) -> Outer:
        return self.set(rounds=self.rounds + 1)


REFUSED: dict[str, tuple[Callable[[Outer, Go], Outer], str]] = {
    "what .set returned": (
        lambda c, e: c.set(rounds=1).set(ruonds=2),
        "Outer has no field 'ruonds' — did you mean 'rounds'? (fields: rounds, inner, other, several)",
    ),
    "a context within": (
        lambda c, e: c.set(inner=c.inner.set(depp=1)),
        "Inner has no field 'depp' — did you mean 'deep'? (fields: deep)",
    ),
    "a context within that is optional": (
        lambda c, e: c.set(other=c.other.set(rounds=1) if c.other else None),
        "Inner has no field 'rounds' (fields: deep)",
    ),
    "model_copy": (
        lambda c, e: c.model_copy(update={"ruonds": 1, "rounds": 2}),
        "Outer has no field 'ruonds' — did you mean 'rounds'? (fields: rounds, inner, other, several)",
    ),
    "what model_copy returned": (
        lambda c, e: c.set(other=c.model_copy(update={"rounds": 2}).inner.set(depp=1)),
        "Inner has no field 'depp' — did you mean 'deep'? (fields: deep)",
    ),
}
TAKEN: dict[str, Callable[[Outer, Go], Outer]] = {
    "what .set returned": lambda c, e: c.set(rounds=1).set(rounds=2).again(),
    "a context within": lambda c, e: c.set(inner=c.inner.set(deep=1)),
    "one of several": lambda c, e: c.set(several=c.several.set(deep=1)),
    "model_copy": lambda c, e: c.model_copy(update={"rounds": 1}),
    "model_copy of what is made": lambda c, e: c.model_copy(update={**{"rounds": 1}}),
    "what a function returned": lambda c, e: {"x": c}["x"].set(rounds=1),
}


def outer(assign: Callable[[Outer, Go], Outer]) -> Machine[Any, Outer, None]:
    m = Machine("m", context=Outer, start=lambda _: Outer())
    m.state("a", initial=True).gate().on(Go, assign=assign)
    return m


@pytest.mark.parametrize("what", REFUSED)
def test_what_comes_of_a_context_is_read_too(what: str) -> None:
    assign, text = REFUSED[what]
    with pytest.raises(BuildRefused) as raised:
        outer(assign).build()
    (problem,) = raised.value.problems
    assert problem.endswith(text)


@pytest.mark.parametrize("what", TAKEN)
def test_what_comes_of_a_context_may_be_set(what: str) -> None:
    run = start(outer(TAKEN[what]).build())
    run.send(Go())
    assert run.fault is None


def other_object(context: Ctx, event: Go) -> Ctx:
    class Mine:
        def set(self, **given: int) -> Ctx:
            return context.set(rounds=given["whatever"])

    return Mine().set(whatever=1)


def bound_anew(context: Any, event: Go) -> Any:
    before, context = context, Box()
    context.set(whatever=1)
    return before


def asks(context: Any, event: Go) -> Any:
    return context.set(other=1) if hasattr(context, "other") else context.set(rounds=1)


def spread(context: Ctx, event: Go) -> Ctx:
    return context.set(**{"rounds": 1})


class Box:
    def set(self, **given: int) -> None:
        assert given == {"whatever": 1}


@pytest.mark.parametrize("assign", [other_object, bound_anew, asks, spread])
def test_what_is_no_call_on_the_context_is_left_alone(assign: Assign) -> None:
    assert fault_of(with_assign(assign)) is None


def test_a_wrapped_function_is_not_read_for_it_may_get_something_else() -> None:
    @functools.wraps(in_a_def)
    def outer(context: Ctx, event: Go) -> Ctx:
        return context

    with_assign(outer)
    with_assign(functools.partial(in_a_def))


def test_a_context_with_its_own_set_decides_itself() -> None:
    class Own(Ctx):
        def set(self, **changes: Any) -> Own:
            return super().set(notes=str(changes))

    m = Machine("m", context=Own, start=lambda _: Own())
    m.state("a", initial=True).on(Go, assign=lambda c, e: c.set(anything=1))

    m.build()


def test_where_there_is_no_source_the_run_says_it() -> None:
    space: dict[str, Any] = {}
    exec(compile("wrong = lambda c, e: c.set(note='')", "<made>", "exec"), space)

    assert fault_of(with_assign(space["wrong"])) == (
        'the assign of state "a" on "go" raised AttributeError: Ctx has no field \'note\' — did you '
        "mean 'notes'? (fields: notes, rounds)"
    )


def test_the_run_names_the_nearest_field_too() -> None:
    with pytest.raises(
        AttributeError,
        match=r"^Ctx has no field 'note' — did you mean 'notes'\? \(fields: notes, rounds\)$",
    ):
        Ctx().set(note="")
