"""A value that is nested too deep is refused where it is made, and harms no other run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue

from jr2 import (
    Context,
    EventRefused,
    ExternalEvent,
    Http,
    HttpInput,
    InputRefused,
    Machine,
    Message,
)
from jr2.nesting import MOST_NESTED, TooDeep, shallow
from jr2.testing import Run, start

WHY = f"it is nested deeper than {MOST_NESTED} lists and objects"


class Go(ExternalEvent):
    """Go on."""

    value: Any = None


class Told(Message):
    value: Any = None


class Door(BaseModel):
    value: Any = None


class Ctx(Context):
    n: int = 0


async def work(value: Any) -> Any:
    return value


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


@given(st.recursive(st.text() | st.none(), lambda inner: st.lists(inner, max_size=3)))
def test_text_and_width_are_no_depth(value: JsonValue) -> None:
    wide: JsonValue = ['[{"\\', {"a]": "\\"}, *[[value]] * 60, *[{"b": value}] * 60]
    text = json.dumps(wide)
    assert shallow(text) == text
    around = MOST_NESTED - depth_of(wide)
    deep = "[" * around + text + "]" * around
    assert shallow(deep) == deep
    with pytest.raises(TooDeep):
        shallow(f"[{deep}]")


def made(
    write: Callable[[Machine[Any, Ctx, Any], Any], object], output: Any = None
) -> Run[Any, Any]:
    m: Any = Machine("m", context=Ctx, output=output, start=lambda i: Ctx())
    write(m, m.state("s", initial=True))
    run: Run[Any, Any] = start(m.build())
    return run


MADE: dict[str, Callable[[Any], Run[Any, Any]]] = {
    "the Gate": lambda value: made(lambda m, s: s.gate(meta=lambda c: value).on(Go)),
    "the emit": lambda value: made(lambda m, s: s.entry(emit=lambda c: Told(value=value))),
    "the input of task": lambda value: made(
        lambda m, s: s.run(m.task("work", work), lambda c: value)
    ),
    "the input of Effect": lambda value: made(
        lambda m, s: s.run(
            m.effect("tell", Http(url="https://h")), lambda c: HttpInput(json_body=value)
        )
    ),
    "the output": lambda value: made(
        lambda m, s: s.always(to=m.final("f", lambda c: value)), output=Any
    ),
}


@pytest.mark.parametrize("what", MADE)
def test_what_a_machine_gives_away(what: str) -> None:
    assert MADE[what](nested(MOST_NESTED - 2)).fault is None
    fault = MADE[what](nested(MOST_NESTED + 1)).fault
    assert fault is not None
    assert fault.startswith(what)
    assert fault.endswith(WHY)


def test_what_is_sent_to_a_machine_is_refused_and_the_run_goes_on() -> None:
    run = made(lambda m, s: s.gate().on(Go, to=m.final("done")))
    with pytest.raises(EventRefused, match=WHY):
        run.send(Go(value=nested(MOST_NESTED)))
    run.send(Go(value=nested(MOST_NESTED - 1)))
    assert run.value == "done"


@pytest.mark.parametrize("door", [None, Door])
def test_the_input_of_a_run(door: type[BaseModel] | None) -> None:
    m: Any = Machine("m") if door is None else Machine("m", door=door)
    m.state("s", initial=True)
    machine = m.build()
    assert start(machine, {"value": nested(MOST_NESTED - 1)}).fault is None
    with pytest.raises(InputRefused, match=WHY):
        start(machine, {"value": nested(MOST_NESTED)})
