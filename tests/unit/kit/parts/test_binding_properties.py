"""Whatever a Machine composes and leaves Open: the printed lines bind all of it, and no more."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import jr2
from jr2 import OPEN, BuiltMachine, Command, Context, Http, Machine, Push, WorkspaceSpec, workspace
from jr2.parts.carried import carried
from jr2.parts.open_parts import find, refusals

Built = BuiltMachine[Any, Any, Any]
SLOTS = st.sampled_from(["a", "b-c", "d_e", "type", "class"])
VALUES = {
    "<slot>": "app",
    "<url>": "https://github.com/you/app.git",
    "<provider>/<model>": "local/qwen",
    "https://<host>/<path>": "https://example.com/hook",
    "<program>": "make",
    "<arg>": "test",
    "<name>": "HOOK_TOKEN",
    "<import>": "it",
}


class Door(BaseModel):
    x: int = 0


class Ctx(Context):
    pass


@st.composite
def machines(draw: st.DrawFn, depth: int = 2) -> Built:
    m: Machine[Any, Ctx, None] = Machine("m", context=Ctx, start=lambda _: Ctx())
    if draw(st.booleans()):
        model: Any = draw(st.sampled_from([OPEN, "local/qwen"]))
        m.agent("agent", model=model, instructions="x")
    kinds: list[Any] = [
        Http(url=draw(st.sampled_from([OPEN, "https://h"]))),
        Http(url="https://h", secret=draw(st.sampled_from([OPEN, "S", None]))),
        Command(argv=draw(st.sampled_from([OPEN, ("make",)])), secret=OPEN),
        Push(repo="app"),
    ]
    for number, definition in enumerate(draw(st.lists(st.sampled_from(kinds), max_size=2))):
        m.effect(f"effect-{number}", definition)
    if depth:
        for slot in draw(st.lists(SLOTS, max_size=2, unique=True)):
            m.child(slot, draw(machines(depth - 1)))
    m.state("only", initial=True)
    built = m.build()
    if draw(st.booleans()):
        return built
    values = st.sampled_from([OPEN, "https://h/a", "git@h:a/b.git"])
    repos: Any = draw(
        st.one_of(st.just(OPEN), st.dictionaries(SLOTS, values, min_size=1, max_size=2))
    )
    return workspace(built, door=Door, repos=repos, spec=lambda door: WorkspaceSpec(branch="b"))


def pasted(refusal: str, machine: Built) -> Built:
    (line,) = re.findall(r"(machine = customize\(.*\))  \(ADR-\d+\)$", refusal)
    for sample, value in VALUES.items():
        line = line.replace(sample, value)
    names: dict[str, Any] = {"it": machine, "customize": jr2.customize}
    exec(compile(line, "workflows/w.py", "exec"), names)
    made: Built = names["machine"]
    return made


@settings(max_examples=60, deadline=None)
@given(machines())
def test_the_printed_lines_bind_everything_and_change_no_shape(machine: Built) -> None:
    before = [(part.what, part.path) for part in find(machine)]
    bound = machine
    for refusal in refusals("w", machine):
        bound = pasted(refusal, bound)

    assert refusals("w", bound) == []
    assert bound.shape() == machine.shape()
    assert [(part.what, part.path) for part in find(machine)] == before
    assert carried(bound).composes_sandbox == carried(machine).composes_sandbox
    assert carried(bound).sandbox_effector == carried(machine).sandbox_effector


@settings(max_examples=60, deadline=None)
@given(machines())
def test_one_line_binds_one_part(machine: Built) -> None:
    parts = find(machine)
    for number, refusal in enumerate(refusals("w", machine)):
        left = find(pasted(refusal, machine))

        expected = [*parts[:number], *parts[number + 1 :]]
        assert [(one.what, one.path) for one in left] == [(one.what, one.path) for one in expected]
