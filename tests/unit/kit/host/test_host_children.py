"""A child Machine in an Assembly process: its tasks, its Gates, and a pick that it takes."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.kit.host.conftest import Assembly

PARENT = """
from jr2 import AgentEvent, Context, ExternalEvent, Machine, Turn


class Go(ExternalEvent):
    pass


class Give(AgentEvent):
    text: str


class Ctx(Context):
    text: str = ""


async def greet() -> str:
    return "hello"


def inner() -> object:
    m = Machine("inner", context=Ctx, output=str, start=lambda _: Ctx())
    coder = m.agent("coder", model="x/y", instructions="Code.", workspace="none")
    greeting, asking = m.state("greeting", initial=True), m.state("asking")
    end = m.final("end", lambda c: c.text)
    greeting.run(m.task("greet", greet)).done(to=asking, assign=lambda c, t: c.set(text=t))
    asking.turn(coder, lambda c: Turn(prompt="go"))
    asking.gate()
    asking.on(Give, to=end, assign=lambda c, e: c.set(text=e.text))
    asking.on(Go, to=end)
    return m.build()


m = Machine("outer", context=Ctx, output=str, start=lambda _: Ctx())
child = m.child("inner", inner())
hosting = m.state("hosting", initial=True)
hosting.invoke(child).done(
    to=m.final("end", lambda c: c.text), assign=lambda c, text: c.set(text=text)
)
machine = m.build()
"""
CHILD = "hosting#1:child.inner"


def test_a_child_runs_over_the_wire(assembly: Assembly, start: Any) -> None:
    assembly.workflow("outer", PARENT)
    process = start()
    loaded = process.load()
    assert loaded["problems"] == []
    stepped, snapshot = process.ask(op="start", workflow="outer", run_id="r")
    (task,) = stepped["commands"]
    assert (task["key"], task["machine"]) == (f"{CHILD}/greeting#1:task.greet", ["inner"])

    done, _ = process.ask(op="task", workflow="outer", run_id="r", **_asked(task))
    assert (done["kind"], done["output"]) == ("task_done", "hello")
    nobody, _ = process.ask(
        op="task", workflow="outer", run_id="r", **_asked(task) | {"machine": ["nobody"]}
    )
    assert nobody["error"] == "no child Machine at 'nobody'"

    event = {"kind": "task_done", "key": task["key"], "output": "hello"}
    stepped, snapshot = process.ask(snapshot, op="step", workflow="outer", run_id="r", event=event)
    (turn,) = stepped["commands"]
    assert (turn["kind"], turn["actor"], turn["picks"]) == ("start_turn", ["inner"], ["give"])

    event = {"kind": "pick", "key": turn["key"], "name": "give", "payload": {"text": "bye"}}
    stepped, snapshot = process.ask(snapshot, op="step", workflow="outer", run_id="r", event=event)
    assert stepped["receipt"] == {
        "event": "give",
        "moved": True,
        "turn_complete": True,
        "allowed": [],
    }
    assert json.loads(snapshot)["output"] == "bye"


def _asked(task: dict[str, Any]) -> dict[str, Any]:
    return {name: task[name] for name in ("key", "machine", "slot")}
