"""An Effect in a run: what is asked, what comes back as its type, and what cannot be asked."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue

from jr2 import (
    BuiltMachine,
    Command,
    CommandInput,
    CommandResult,
    Context,
    Http,
    HttpInput,
    Machine,
    Push,
)
from jr2.host_wire import RunEffect, TaskDone, TaskFailed
from jr2.kernel import Step


class Ctx(Context):
    code: int = -1
    said: str = ""


def written(definition: Any, input: Any = None) -> BuiltMachine[Any, Any, Any]:
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    effect = m.effect("e", definition)
    a, done, failed = m.state("a", initial=True), m.final("done"), m.final("failed")
    a.run(effect, input).done(
        to=done, guard=lambda c, r: isinstance(r, CommandResult), assign=keep
    ).done(to=done, assign=lambda c, r: c.set(said=type(r).__name__)).failed(
        to=failed, assign=lambda c, error: c.set(said=error.reason)
    )
    return m.build()


def keep(context: Ctx, result: Any) -> Ctx:
    return context.set(code=result.exit_code, said=result.stderr)


def asked(step: Step) -> RunEffect:
    (command,) = step.commands
    assert isinstance(command, RunEffect)
    return command


def test_an_effect_is_asked_with_its_input_and_answers_with_its_type() -> None:
    machine = written(Command(argv=["make"]), lambda c: CommandInput(cwd="/work/app", stdin="x"))
    step = machine.start(None, "run-1")
    command = asked(step)
    assert (command.slot, command.machine) == ("e", [])
    assert command.input == {"cwd": "/work/app", "args": [], "stdin": "x"}

    output: JsonValue = {"exit_code": 2, "stderr": "no rule"}
    step = machine.step(step.snapshot, TaskDone(key=command.key, output=output))

    view = machine.view(step.snapshot)
    assert (view.value, view.context) == ("done", {"code": 2, "said": "no rule"})


def test_an_effect_whose_input_has_defaults_needs_none() -> None:
    machine = written(Push(repo="app"))
    step = machine.start(None, "run-1")
    assert asked(step).input == {"branch": None}

    output: JsonValue = {"remote": "u", "ref": "refs/heads/x", "before": None, "after": "abc"}
    step = machine.step(step.snapshot, TaskDone(key=asked(step).key, output=output))

    assert machine.view(step.snapshot).context == {"code": -1, "said": "PushResult"}


def test_an_effect_that_was_not_done_says_why() -> None:
    machine = written(Push(repo="app"))
    step = machine.start(None, "run-1")

    step = machine.step(step.snapshot, TaskFailed(key=asked(step).key, reason="no known_hosts"))

    view = machine.view(step.snapshot)
    assert (view.value, view.context) == ("failed", {"code": -1, "said": "no known_hosts"})


@pytest.mark.parametrize(
    ("input", "text"),
    [
        (
            lambda c: {"cwd": "/"},
            'the Effect "e" is given an object of type dict, and not its HttpInput(…)',
        ),
        (
            lambda c: HttpInput(json_body={}, text_body=""),
            'the Effect "e" is given two bodies',
        ),
    ],
)
def test_an_input_that_is_none_faults_the_run(input: Any, text: str) -> None:
    machine = written(Http(url="https://h"), input)

    step = machine.start(None, "run-1")

    assert step.commands == ()
    assert text in (machine.view(step.snapshot).fault or "")


def test_a_result_of_another_kind_faults_the_run_without_its_value() -> None:
    machine = written(Command(argv=["make"]))
    step = machine.start(None, "run-1")

    step = machine.step(
        step.snapshot, TaskDone(key=asked(step).key, output={"exit_code": "CANARY"})
    )

    view = machine.view(step.snapshot)
    assert view.status == "error" or view.value == "failed"
    assert "CANARY" not in f"{view.fault} {view.context}"


def test_a_handle_says_what_it_is() -> None:
    m = Machine("m")

    assert repr(m.agent("coder", model="local/qwen", instructions="x")) == "<Agent 'coder'>"
    assert repr(m.effect("ship", Push(repo="app"))) == "<Effect 'ship'>"
