"""The desk: what waits, what stand-ins answer, the clock, and what it refuses."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from jr2 import (
    AgentEvent,
    AgentFault,
    Command,
    CommandInput,
    CommandResult,
    Context,
    ExternalEvent,
    HttpResult,
    Machine,
    Message,
    Turn,
)
from jr2.kernel import EventRefused
from jr2.testing import NotWaiting, start


class Door(BaseModel):
    number: int = 0


class Go(ExternalEvent):
    """Go on."""


class Other(ExternalEvent):
    """Something else."""


class Pick(AgentEvent):
    """Take a number."""

    number: int


class Said(Message):
    """What was done."""

    number: int


class Ctx(Context):
    number: int
    reason: str | None = None


def machine() -> Any:
    """A Turn, an Effect, a task, a Gate and a timer, one after another."""
    m = Machine("desk", door=Door, context=Ctx, start=lambda i: Ctx(number=i.door.number))
    thinker = m.agent("thinker", model="a/b", workspace="none", instructions="Think.")
    check = m.effect("check", Command(argv=["true"]))

    async def double(number: int) -> int:
        return number * 2

    doubling = m.task("double", double)
    names = ("thinking", "checking", "doubling", "waiting")
    thinking, checking, working, waiting = (m.state(n, initial=n == "thinking") for n in names)
    done, failed, late = (m.final(name) for name in ("done", "failed", "late"))
    thinking.turn(thinker, lambda c: Turn(prompt=f"from {c.number}"))
    thinking.on(Pick, to=checking, guard=lambda c, e: e.number > c.number)
    thinking.on(AgentFault, to=failed, assign=lambda c, e: c.set(reason=e.reason))
    checking.run(check, lambda c: CommandInput(args=(str(c.number),))).done(
        to=working, guard=lambda c, r: r.exit_code == 0
    ).failed(to=failed, assign=lambda c, e: c.set(reason=e.reason))
    working.run(doubling, lambda c: c.number).done(
        to=waiting, assign=lambda c, r: c.set(number=r), emit=lambda c, r: Said(number=r)
    ).failed(to=failed, assign=lambda c, e: c.set(reason=e.reason))
    waiting.gate()
    waiting.on(Go, to=done)
    waiting.after(timedelta(days=7), to=late)
    return m.build()


def test_what_nobody_plays_waits_and_is_answered_by_the_test() -> None:
    run = start(machine(), Door(number=2))

    (asked,) = run.turns
    assert (asked.name, asked.turn, asked.picks) == ("thinker", Turn(prompt="from 2"), ("pick",))
    refused = run.pick(Pick(number=1))  # the guard says no, so the Turn goes on
    assert (refused.moved, refused.turn_complete, refused.allowed) == (False, False, ["pick"])
    assert run.pick(Pick(number=3)).moved
    assert run.turns == []

    (effect,) = run.effects
    assert (effect.name, effect.input["args"]) == ("check", ["2"])  # type: ignore[index,call-overload]
    run.effect_returns(CommandResult(exit_code=0))
    assert [one.input for one in run.tasks] == [2]
    run.run_task("double")
    assert run.context == Ctx(number=4)
    assert run.emitted == [("said", {"number": 4})]
    assert (run.gates, run.timers) == (["waiting"], [timedelta(days=7)])
    run.send(Go())
    assert (run.status, run.value, run.timers) == ("done", "done", [])


def test_stand_ins_answer_at_once() -> None:
    played = machine().provide(
        agents={"thinker": lambda turn: Pick(number=9)},
        effects={"check": lambda given: CommandResult(exit_code=0)},
        tasks={"double": lambda number: number + 100},
    )
    run = start(played)
    assert (run.value, run.context.number) == ("waiting", 100)


@pytest.mark.parametrize(
    ("fakes", "reason"),
    [
        ({"agents": {"thinker": lambda _: AgentFault(instance_id="i", reason="lost")}}, "lost"),
        ({"effects": {"check": lambda _: 1 / 0}}, "ZeroDivisionError"),
    ],
)
def test_the_failure_of_a_stand_in_is_the_failure_of_its_part(
    fakes: dict[str, Any], reason: str
) -> None:
    given = {"agents": {"thinker": lambda _: Pick(number=9)}, **fakes}
    run = start(machine().provide(**given))
    assert run.value == "failed"
    assert reason in run.context.reason


def test_each_part_can_fail() -> None:
    run = start(machine())
    run.fail_turn("provider limit")
    assert run.context.reason == "provider limit"

    run = start(machine())
    run.pick(Pick(number=1))
    run.effect_fails("no such program")
    assert run.context.reason == "no such program"

    run = start(machine())
    run.pick(Pick(number=1))
    run.effect_returns(CommandResult(exit_code=0))
    run.task_fails("it raised")
    assert (run.status, run.context.reason) == ("done", "it raised")


def test_time_passes_when_the_test_says_so() -> None:
    run = start(machine())
    run.pick(Pick(number=1))
    run.effect_returns(CommandResult(exit_code=0))
    run.task_returns(5)
    run.advance(timedelta(days=6))
    assert run.timers == [timedelta(days=1)]
    run.advance(timedelta(days=1))
    assert (run.status, run.value) == ("done", "late")


def test_timers_fire_in_their_order_each_at_its_own_time() -> None:
    m = Machine("ticks", context=Ctx, start=lambda i: Ctx(number=0))
    ticking = m.state("ticking", initial=True)
    ticking.after(timedelta(minutes=1), to=ticking, assign=lambda c: c.set(number=c.number + 1))
    run = start(m.build())
    run.advance(timedelta(minutes=5, seconds=30))
    assert (run.context.number, run.timers) == (5, [timedelta(seconds=30)])


def test_of_several_timers_the_one_that_is_due_first_fires_first() -> None:
    class Log(Context):
        seen: tuple[int, ...] = ()

    m = Machine("m", context=Log, start=lambda i: Log())
    a = m.state("a", initial=True)
    for minutes in (3, 1, 2):
        late(a, minutes)
    run = start(m.build())
    run.advance(timedelta(minutes=5))
    assert run.context.seen == (1, 2, 3)


def late(state: Any, minutes: int) -> None:
    state.after(timedelta(minutes=minutes), assign=lambda c: c.set(seen=(*c.seen, minutes)))


def test_what_does_not_wait_is_refused_with_what_does() -> None:
    run = start(machine())
    with pytest.raises(NotWaiting, match=r"no effect waits in 'thinking' \(waiting: none\)"):
        run.effect_returns(CommandResult(exit_code=0))
    with pytest.raises(NotWaiting, match=r'no turn "x" waits in .* \(waiting: thinker\)'):
        run.pick(Pick(number=1), agent="x")
    with pytest.raises(NotWaiting, match=r"no such Gate is open in 'thinking' \(open: none\)"):
        run.send(Go())
    with pytest.raises(NotWaiting, match="no body of a Workspace"):
        run.lose_workspace()
    with pytest.raises(EventRefused, match="does not take the pick"):
        run.pick(Other())
    with pytest.raises(EventRefused, match="does not fit"):
        start(machine(), {"number": "many"})
    run.cancel()
    assert (run.status, run.turns) == ("cancelled", [])


def test_stand_ins_that_never_come_to_rest_are_found() -> None:
    m = Machine("loop", context=Ctx, start=lambda i: Ctx(number=0))
    agent = m.agent("a", model="a/b", workspace="none", instructions="Loop.")
    looping = m.state("looping", initial=True)
    looping.turn(agent, lambda c: Turn(prompt="again"))
    looping.on(Pick, to=looping)
    with pytest.raises(RuntimeError, match="do not come to rest"):
        start(m.build().provide(agents={"a": lambda _: Pick(number=1)}))


def test_a_stand_in_whose_pick_moves_nothing_is_found() -> None:
    with pytest.raises(RuntimeError, match=r'picked "pick" in .thinking., and the state was not'):
        start(machine().provide(agents={"thinker": lambda _: Pick(number=-1)}))


async def _inside_a_loop() -> None:
    run = start(machine().provide(tasks={"double": lambda number: number + 1}))
    run.pick(Pick(number=1))
    run.effect_returns(CommandResult(exit_code=0))
    assert run.context.number == 1


@pytest.mark.anyio
async def test_the_desk_works_inside_a_running_loop() -> None:
    await _inside_a_loop()


def test_an_answer_of_the_wrong_kind_is_said_as_one() -> None:
    run = start(machine())
    with pytest.raises(TypeError, match=r"Pick'> is no event: give an object .*, as in Pick\(…\)$"):
        run.pick(Pick)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^\{\} is no event: give an object of its class"):
        run.pick({})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^start\(\) is given 3: give what .build\(\) returned$"):
        start(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^the clock does not go back: advance\(.*days=-1"):
        run.advance(timedelta(days=-1))
    run.pick(Pick(number=1))
    with pytest.raises(TypeError, match=r'"check" returns a CommandResult, and is answered HttpR'):
        run.effect_returns(HttpResult(status=200))
    assert [one.name for one in run.effects] == ["check"]
    run.effect_returns(CommandResult(exit_code=0))
    with pytest.raises(TypeError, match=r'^task "double" is answered <object .* has no JSON form$'):
        run.task_returns(object())
    assert [one.name for one in run.tasks] == ["double"]


class Item(BaseModel):
    key: str


def test_tasks_of_the_same_slot_in_several_children_are_told_apart() -> None:
    async def measure(item: Item) -> Item:
        raise AssertionError(item)

    worker = Machine("worker", door=Item, output=str)
    measuring = worker.state("measuring", initial=True)
    measuring.run(worker.task("measure", measure), lambda c: Item(key="x")).done(
        to=worker.final("ended", lambda c: "well")
    )
    m = Machine("all", context=Ctx, start=lambda i: Ctx(number=0))
    child = m.child("worker", worker.build())
    running = m.state("running", initial=True)
    running.each(child, lambda c: {key: Item(key=key) for key in ("a", "b")}).done(
        assign=lambda c, r: c.set(number=c.number + 1)
    )
    run = start(m.build())

    assert [one.name for one in run.tasks] == ["a/measure", "b/measure"]
    run.task_returns(Item(key="x"), task="b/measure")
    assert run.context.number == 1
    assert [one.name for one in run.tasks] == ["a/measure"]


async def measured(number: int) -> int:
    return number


class Sums(Context):
    total: int = 0


def test_one_slot_that_several_states_have_started_is_told_apart_by_its_key() -> None:
    m = Machine("m", context=Sums, start=lambda i: Sums())
    agent = m.agent("asked", model="a/b", instructions="x", workspace="none")
    tests = m.effect("tests", Command(argv=["make"]))
    task = m.task("measured", measured)
    both = m.parallel("both", initial=True)
    for number, name in enumerate(("left", "right"), 1):
        region = both.state(name)
        waiting = region.state("waiting", initial=True)
        waiting.turn(agent, lambda c, name=name: Turn(prompt=name))  # type: ignore[misc]
        waiting.run(tests).done(to=None)
        waiting.run(task, lambda c, number=number: number).done(  # type: ignore[misc]
            to=None, assign=lambda c, got: c.set(total=c.total * 10 + got)
        )
        waiting.on(Pick, to=region.final("picked"))
    run = start(m.build())

    with pytest.raises(
        NotWaiting, match=r'more than one turn "asked" waits .* — give the key of one'
    ):
        run.pick(Pick(number=1), agent="asked")
    run.pick(
        Pick(number=1), agent=next(one.key for one in run.turns if one.turn == Turn(prompt="right"))
    )
    assert run.value == {"both": {"left": "waiting", "right": "picked"}}

    (left,) = run.turns
    assert left.turn == Turn(prompt="left")
    run.effect_returns(CommandResult(exit_code=0), effect=run.effects[0].key)
    assert run.effects == []
    run.run_task(run.tasks[0].key)
    assert (run.tasks, run.context.total) == ([], 1)


def test_the_keys_of_tasks_are_answered_in_any_order() -> None:
    m = Machine("m", context=Sums, start=lambda i: Sums())
    task = m.task("measured", measured)
    waiting = m.state("waiting", initial=True)
    for number in (1, 2):
        waiting.run(task, lambda c, number=number: number).done(  # type: ignore[misc]
            to=None, assign=lambda c, got: c.set(total=c.total * 10 + got)
        )
    run = start(m.build())
    first, second = run.tasks
    assert (first.name, second.name) == ("measured", "measured")

    run.run_task(second.key)
    run.task_returns(5, task=first.key)

    assert run.context.total == 25
