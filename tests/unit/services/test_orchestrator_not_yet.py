"""A run that reaches a part whose pods do not exist yet ends with a fault that says so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from jr2 import (
    AgentEvent,
    BuiltMachine,
    Context,
    Http,
    Machine,
    Push,
    Turn,
    WorkspaceSpec,
    host_wire,
    workspace,
)
from jr2.kernel import Step
from jr2_runtime.orchestrator.engine.transition import Transition, after_step
from jr2_runtime.orchestrator.store import Run

RUN = Run(
    id="run-1",
    instance_id="run-1",
    workflow="w",
    assembly="a",
    shape="s",
    status="live",
    reason=None,
    seq=3,
    view=json.dumps({"status": "active", "value": "before", "context": {"n": 1}}),
    snapshot=b"before",
)


class Door(BaseModel):
    pass


class Ctx(Context):
    pass


class Finish(AgentEvent):
    pass


def asks() -> BuiltMachine[Any, Any, Any]:
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    coder = m.agent("coder", model="x/y", workspace="none", instructions="x")
    outer = m.state("outer", initial=True)
    outer.state("coding", initial=True).on(Finish).turn(coder, lambda c: Turn(prompt="x"))
    return m.build()


def calls(definition: Any = Http(url="https://h")) -> BuiltMachine[Any, Any, Any]:  # noqa: B008
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    m.state("telling", initial=True).run(m.effect("hook", definition))
    return m.build()


def works() -> BuiltMachine[Any, Any, Any]:
    return workspace(
        calls(Push(repo="app")),
        door=Door,
        repos={"app": "https://h/a"},
        spec=lambda door: WorkspaceSpec(branch="b"),
    )


def carries() -> BuiltMachine[Any, Any, Any]:
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    child = m.child("inner", asks())
    m.state("a", initial=True).invoke(child, lambda c: None)
    return m.build()


def kept(machine: BuiltMachine[Any, Any, Any], step: Step) -> Transition:
    """Return what the Orchestrator makes of a step, over the frames that it would come in."""
    shown = machine.view_json(step.snapshot)
    reply = host_wire.Stepped(id=1, view=len(shown), commands=list(step.commands))
    told = host_wire.Stepped.model_validate_json(reply.model_dump_json())
    return after_step(RUN, told, shown + machine.dump(step.snapshot), 0)


@pytest.mark.parametrize(
    ("machine", "text"),
    [
        (asks(), 'Agent "coder" in state "outer.coding": this version of jr2 runs no Turns yet'),
        (calls(), 'Effect "hook" in state "telling": this version of jr2 runs no Effects yet'),
        (works(), 'Workspace in state "placing": this version of jr2 runs no Sandboxes yet'),
        (
            carries(),
            'Agent "coder" in state "outer.coding": this version of jr2 runs no Turns yet',
        ),
    ],
)
def test_the_fault_names_the_part_the_state_and_what_is_missing(
    machine: BuiltMachine[Any, Any, Any], text: str
) -> None:
    transition = kept(machine, machine.start({}, "run-1"))

    assert transition.run.status == "error"
    assert transition.run.shown()["fault"] == text
    # It ends as it stood: nothing was started that would have to be stopped.
    assert transition.changes.started == ()
    assert transition.changes.armed == ()
    assert transition.run.snapshot == b"before"
