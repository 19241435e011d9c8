"""`provide`: stand-ins under the slots of a Machine, with all that is around them left as it is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, ValidationError

from jr2 import (
    AgentFault,
    BuildRefused,
    Command,
    CommandInput,
    CommandResult,
    Context,
    HttpResult,
    Machine,
    Next,
    Source,
    Turn,
    pool,
)
from jr2.parts.providing import run_effect, take_turn

if TYPE_CHECKING:
    from .conftest import Built, MakeBody, Wrap


class Ctx(Context):
    n: int = 0


async def double(n: int) -> int:
    raise AssertionError("the real task is not run")


def written() -> Built:
    m = Machine("m", context=Ctx, start=lambda _: Ctx())
    task, tests = m.task("double", double), m.effect("tests", Command(argv=["make"]))
    m.agent("coder", model="x/y", instructions="x", workspace="none")
    a = m.state("a", initial=True)
    a.run(task, lambda c: 4)
    a.run(tests, lambda c: CommandInput(args=("-k",)))
    return m.build()


def test_a_task_is_replaced_and_its_types_stay() -> None:
    async def tripled(n: int) -> int:
        return 3 * n

    real = written()
    plain, awaited = (
        real.provide(tasks={"double": lambda n: 2 * n}),
        real.provide(tasks={"double": tripled}),
    )

    assert asyncio.run(plain.run_task("double", 4)) == 8
    assert asyncio.run(awaited.run_task("double", 4)) == 12
    with pytest.raises(ValidationError):
        asyncio.run(plain.run_task("double", "four"))
    with pytest.raises(ValidationError):
        asyncio.run(real.provide(tasks={"double": lambda n: "x"}).run_task("double", 4))
    with pytest.raises(AssertionError, match="the real task is not run"):
        asyncio.run(real.run_task("double", 4))


def test_an_effect_gets_its_input_and_gives_its_result() -> None:
    seen: list[CommandInput] = []

    def ran(given: CommandInput) -> CommandResult:
        seen.append(given)
        return CommandResult(exit_code=1, stderr="no")

    machine = written().provide(effects={"tests": ran})
    commands = machine.start(None, "run-1").commands
    (command,) = [one for one in commands if one.kind == "run_effect"]

    assert run_effect(machine, command.slot, command.input) == {
        "exit_code": 1,
        "signal": None,
        "stdout": "",
        "stderr": "no",
    }
    assert seen == [CommandInput(args=("-k",))]


def test_what_a_stand_in_may_not_return_is_refused() -> None:
    machine = written().provide(
        effects={"tests": lambda _: HttpResult(status=200)},
        agents={"coder": lambda turn: turn},  # type: ignore[dict-item,return-value]
    )

    with pytest.raises(TypeError, match=r"returned HttpResult\(.*\), and not a CommandResult"):
        run_effect(machine, "tests", {})
    with pytest.raises(TypeError, match="which is no event"):
        take_turn(machine, "coder", {"prompt": "x"})
    with pytest.raises(KeyError):
        take_turn(written(), "coder", {"prompt": "x"})


def test_an_agent_gets_the_turn(make: MakeBody, wrap: Wrap) -> None:
    def coder(turn: Turn) -> AgentFault:
        return AgentFault(instance_id="i", reason=f"{turn.prompt} in {turn.cwd}")

    machine = wrap(make(children={"a": make(name="inner")})).provide(
        agents={"coder": coder}, actors={"a": {"agents": {"coder": coder}}}
    )

    assert machine.sandbox is not None
    body = machine.sandbox.body
    turn: Any = {"prompt": "x", "cwd": "/work", "continue": False}
    assert take_turn(body, "coder", turn) == AgentFault(instance_id="i", reason="x in /work")
    assert "coder" in body.children["a"].provided.agents
    assert machine.shape() == wrap(make(children={"a": make(name="inner")})).shape()


class Item(BaseModel):
    name: str


async def no_more(active: tuple[str, ...]) -> Next[Item] | None:
    raise AssertionError("the real Source is not asked")


def test_a_pool_hands_stand_ins_to_its_worker_and_keeps_its_own_task() -> None:
    m = Machine("worker", door=Item, context=Ctx, start=lambda _: Ctx())
    m.agent("coder", model="x/y", instructions="x", workspace="none")
    m.task("double", double)
    m.state("a", initial=True)
    pooled = pool(
        m.build(),
        door=Item,
        source=Source(next=no_more),
        item_id=lambda item: item.name,
        item_input=lambda item, door: item,
        on_drained="final",
    )
    fault = AgentFault(instance_id="", reason="a")

    machine = pooled.provide(
        agents={"coder": lambda turn: fault},
        tasks={"double": lambda n: 2 * n, "next": lambda asked: {"id": None}},
    )

    worker = machine.children["worker"]
    assert take_turn(worker, "coder", {"prompt": "x"}) == fault
    assert asyncio.run(worker.run_task("double", 4)) == 8
    answer = asyncio.run(machine.run_task("next", {"active": [], "door": None}))
    assert answer == {"id": None, "input": None, "open": 0}
    with pytest.raises(BuildRefused, match="names the Agent 'x', which it does not have"):
        pooled.provide(agents={"x": lambda turn: fault})


def test_stand_ins_add_up_and_the_original_has_none() -> None:
    real = written()

    machine = real.provide(agents={"coder": lambda turn: AgentFault(instance_id="", reason="a")})
    machine = machine.provide(effects={"tests": lambda given: CommandResult(exit_code=0)})

    assert set(machine.provided.agents) == {"coder"}
    assert set(machine.provided.effects) == {"tests"}
    assert (dict(real.provided.agents), dict(real.provided.effects)) == ({}, {})


def test_every_wrong_name_is_said_at_once(make: MakeBody) -> None:
    machine = make(children={"a": make(name="inner")})
    fakes: Any = {"a": {"agents": {"x": len}, "agent": {}}, "b": {}}

    with pytest.raises(BuildRefused) as refused:
        machine.provide(agents={"codr": len}, tasks={"t": len}, effects={"e": len}, actors=fakes)  # type: ignore[dict-item]

    w = 'provide(…) of machine "ticket" names the '
    inner = 'provide(…) of machine "inner" '
    assert list(refused.value.problems) == [
        f"{w}Agent 'codr', which it does not have (it has: coder)",
        f"{w}Effect 'e', which it does not have (it has: none)",
        f"{w}task 't', which it does not have (it has: none)",
        f"{w}Machine 'b', which it does not have (it has: a)",
        f"{inner}names the Agent 'x', which it does not have (it has: coder)",
        f"{inner}has the key 'agent' (keys: agents, effects, tasks, actors)",
    ]


def test_a_stand_in_is_a_function(make: MakeBody) -> None:
    with pytest.raises(BuildRefused, match='gives 3 for the Agent "coder": give a function'):
        make().provide(agents={"coder": 3})  # type: ignore[dict-item]
