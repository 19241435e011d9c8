"""Machines with every kind of part, small enough to be read at a glance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pytest
from pydantic import BaseModel

from jr2 import (
    OPEN,
    AgentEvent,
    AgentFault,
    BuiltMachine,
    Command,
    Context,
    Http,
    Machine,
    Push,
    Turn,
    WorkspaceSpec,
    workspace,
)

Built = BuiltMachine[Any, Any, Any]
URL = "https://github.com/you/app.git"


class Door(BaseModel):
    ticket: str = "T-1"


class Ctx(Context):
    n: int = 0


class Submit(AgentEvent):
    """The work is done."""


class MakeBody(Protocol):
    """Makes a Machine with one Agent, `coder`, which takes a Turn."""

    def __call__(
        self,
        *,
        model: Any = ...,
        access: Any = ...,
        effects: Mapping[str, Any] = ...,
        children: Mapping[str, Built] = ...,
        inline: Mapping[str, Built] = ...,
        name: str = ...,
        inside: Any = ...,
    ) -> Built: ...


class Wrap(Protocol):
    """Puts a `workspace()` around a body."""

    def __call__(self, body: Built, **parts: Any) -> Built: ...


@pytest.fixture
def make() -> MakeBody:
    return make_body


@pytest.fixture
def wrap() -> Wrap:
    def wrapped(body: Built, **parts: Any) -> Built:
        told: dict[str, Any] = {
            "door": Door,
            "repos": {"app": URL},
            "spec": lambda door: WorkspaceSpec(branch=door.ticket),
        }
        return workspace(body, **(told | parts))

    return wrapped


def make_body(
    *,
    model: Any = "local/qwen",
    access: Any = "write",
    effects: Mapping[str, Any] = {},
    children: Mapping[str, Built] = {},
    inline: Mapping[str, Built] = {},
    name: str = "ticket",
    inside: Any = None,
) -> Built:
    told: dict[str, Any] = {} if inside is None else {"inside": inside}
    m: Machine[Any, Ctx, None] = Machine(name, context=Ctx, start=lambda _: Ctx(), **told)
    coder = m.agent("coder", model=model, instructions="Fix it.", workspace=access)
    for slot, definition in effects.items():
        m.effect(slot, definition)
    for slot, child in children.items():
        m.child(slot, child)
    coding, done = m.state("coding", initial=True), m.final("done")
    coding.on(Submit, to=done).on(AgentFault, to=done)
    coding.turn(coder, lambda c: Turn(prompt="x", cwd="/work"))
    for name, child in inline.items():
        m.state(f"helped-by-{name}").invoke(child, lambda c: Door())
    return m.build()


@pytest.fixture
def everything() -> Built:
    """A Workspace whose body composes another one, with a part of every kind left Open."""
    return everything_open()


def everything_open() -> Built:
    inner = workspace(
        make_body(name="inner", model=OPEN, effects={"sh": Command(argv=OPEN)}),
        door=Door,
        repos=OPEN,
        spec=lambda door: WorkspaceSpec(branch=door.ticket),
    )
    body = make_body(
        model=OPEN,
        effects={
            "hook": Http(url=OPEN, secret=OPEN),
            "tests": Command(argv=["make"], secret=OPEN),
            "ship": Push(repo="app"),
        },
        children={"review": make_body(name="review", model=OPEN, children={"deep": inner})},
        inline={"helper": make_body(name="helper", model=OPEN)},
    )
    return workspace(
        body,
        door=Door,
        repos={"app": OPEN, "docs": URL},
        spec=lambda door: WorkspaceSpec(branch=door.ticket),
    )
