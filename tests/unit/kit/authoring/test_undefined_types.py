"""A name that only a type checker sees is refused by the build, wherever a type uses it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel

from jr2 import BuildRefused, Context, ExternalEvent, InternalEvent, Machine, Message
from jr2.testing import start

if TYPE_CHECKING:
    from decimal import Decimal as Unseen


class Held(Context):
    amount: Unseen | None = None


class Plain(BaseModel):
    amount: Unseen | None = None


class Later(Context):
    inner: Inner | None = None


class Inner(BaseModel):
    n: int = 0


class Again(InternalEvent):
    amount: Unseen | None = None


class Paid(ExternalEvent):
    amount: Unseen | None = None


class Told(Message):
    text: str


async def pay(given: Plain) -> Plain:
    return given


WHY = (
    "name 'Unseen' is not defined — import what its annotations name where the module runs, and not "
    "for the type checker alone"
)


def test_every_type_that_a_machine_reads_is_said_at_once() -> None:
    m = Machine("m", context=Held, output=list[Plain], start=lambda i: Held())
    first, done = m.state("first", initial=True), m.final("done", lambda c: [])
    first.run(m.task("pay", pay), lambda c: Plain()).done(to=done)
    first.on(Again, to=done)
    first.on(Paid, to=done)
    with pytest.raises(BuildRefused) as refused:
        m.build()
    assert str(refused.value).splitlines() == [
        *(
            f'machine "m": cannot read {what}: {WHY}'
            for what in (
                "the context Held",
                "the output",
                'the input of the task "pay"',
                'the result of the task "pay"',
                'the event "again"',
            )
        ),
        'machine "m": cannot say what the event "paid" takes: `Paid` is not fully defined; you '
        "should define `Unseen`, then call `Paid.model_rebuild()`.",
    ]


def test_a_class_that_stands_further_down_is_found() -> None:
    m = Machine("m", context=Later, start=lambda i: Later(inner=Inner(n=1)))
    m.state("first", initial=True)
    run = start(m.build())
    assert run.context.inner == Inner(n=1)


def test_a_message_that_is_no_text_faults_the_run() -> None:
    m = Machine("m")
    m.state("first", initial=True).entry(emit=lambda c: Told(text="\ud800"))
    run = start(m.build())
    assert run.fault is not None
    assert "surrogates not allowed" in run.fault


def test_a_task_that_cancels_itself_has_failed() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    m = Machine("m")
    first = m.state("first", initial=True)
    first.run(m.task("work", work)).failed(to=m.final("failed"))
    run = start(m.build())
    run.run_task()
    assert run.value == "failed"
