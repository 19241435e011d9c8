"""One child Machine for each item: the primitive `each`, and `pool()` which is written with it."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from jr2 import (
    BuildRefused,
    BuiltMachine,
    Context,
    ExternalEvent,
    Machine,
    Next,
    PoolOutput,
    Source,
    charts,
    customize,
    pool,
)
from jr2 import testing as desk
from jr2.parts.carried import visits
from tests.unit.kit.kernel.runs import Run


class Job(BaseModel):
    name: str


class Out(BaseModel):
    text: str


class WorkerCtx(Context):
    name: str


class Finish(ExternalEvent):
    text: str


async def check(name: str) -> None:
    return None


def worker(breaks: bool = False) -> BuiltMachine[Job, WorkerCtx, Out]:
    m = Machine(
        "worker",
        door=Job,
        context=WorkerCtx,
        output=Out,
        start=lambda i: WorkerCtx(name=i.door.name),
    )
    m.agent("coder", model="x/y", instructions="Code.", workspace="none")
    waits = m.state("waits", initial=True)
    waits.gate().on(Finish, to=m.final("end", lambda c: Out(text=c.name)))
    waits.run(m.task("check", check), lambda c: c.name).done()
    if breaks:
        waits.always(to=m.final("never", lambda c: Out(text=str(1 // 0))))
    return m.build()


class Ctx(Context):
    jobs: dict[str, str] = {}  # noqa: RUF012 - a field of a model
    log: tuple[str, ...] = ()


class Set(ExternalEvent):
    jobs: dict[str, str]


class Go(ExternalEvent):
    pass


def team(
    built: Any = None, items: Any = None, *, failed: bool = True
) -> BuiltMachine[Any, Ctx, None]:
    m = Machine("team", context=Ctx, start=lambda _: Ctx(jobs={"a": "Ann", "b": "Bob"}))
    working, idle = m.state("working", initial=True), m.state("idle")
    working.gate(gate="team")
    working.on(Set, assign=lambda c, e: c.set(jobs=e.jobs))
    working.on(Go, to=idle)
    idle.gate(gate="idle").on(Go, to=working)
    workers = working.each(
        m.child("worker", built or worker()),
        items or (lambda c: {item: Job(name=name) for item, name in c.jobs.items()}),
    ).done(assign=lambda c, one: c.set(log=(*c.log, f"{one.item}: {one.output.text}")))
    if failed:
        workers.failed(assign=lambda c, one: c.set(log=(*c.log, f"{one.item}! {one.reason}")))
    return m.build()


def actors(run: Run) -> list[str]:
    return [child["id"] for child in run.view.model_dump()["children"]]


def test_each_item_has_a_child_of_its_own() -> None:
    run = Run(team())

    assert actors(run) == ["a", "b"]
    assert run.said == [
        "start_task working#1:pool.worker@2.a/waits#1:task.check",
        "start_task working#1:pool.worker@3.b/waits#1:task.check",
    ]
    assert [gate.gate for gate in run.view.gates] == ["team", "a.waits", "b.waits"]
    assert run.machine.document()["opaqueStates"] == ["working"]


def test_the_end_of_one_is_heard_and_the_others_go_on() -> None:
    run = Run(team()).gate("a.waits", "finish", text="x")

    assert run.context["log"] == ["a: Ann"]
    assert actors(run) == ["b"]
    # While it is listed it is not started again.
    run.gate("team", "set", jobs={"a": "Ann", "b": "Bob"})
    assert actors(run) == ["b"]


def test_what_is_listed_anew_starts_and_what_is_gone_stops() -> None:
    run = Run(team()).gate("team", "set", jobs={"b": "Bob", "c": "Cid"})

    assert run.said == [
        "stop_task working#1:pool.worker@2.a/waits#1:task.check",
        "start_task working#1:pool.worker@4.c/waits#1:task.check",
    ]
    assert actors(run) == ["b", "c"]
    run.gate("c.waits", "finish", text="x").gate("team", "set", jobs={"b": "Bob"})
    run.gate("team", "set", jobs={"b": "Bob", "c": "Cid"})
    # It was gone in between, so it is another one.
    assert run.said == ["start_task working#1:pool.worker@5.c/waits#1:task.check"]


def test_leaving_the_state_stops_them_all() -> None:
    run = Run(team()).gate("team", "go")

    assert sorted(run.said) == [
        "stop_task working#1:pool.worker@2.a/waits#1:task.check",
        "stop_task working#1:pool.worker@3.b/waits#1:task.check",
    ]
    assert actors(run) == []
    assert actors(run.gate("idle", "go")) == ["a", "b"]


def test_one_that_fails_is_heard_with_its_item() -> None:
    run = Run(team(worker(breaks=True)))

    assert [line.split(" ", 1)[0] for line in run.context["log"]] == ["a!", "b!"]
    assert "ZeroDivisionError" in run.context["log"][0]
    assert actors(run) == []


def test_one_that_fails_without_a_route_ends_the_run() -> None:
    assert str(Run(team(worker(breaks=True), failed=False)).view.fault).startswith(
        'an item of pool "worker" failed and no .failed(…) takes it: '
    )


@pytest.mark.parametrize(
    ("items", "text"),
    [
        (lambda c: ["a"], 'the items of pool "worker" in state "working" returned list, not a'),
        (
            lambda c: {"a/b": Job(name="x")},
            'the items of pool "worker" in state "working" have the id \'a/b\': an id is a short',
        ),
        (lambda c: {"": Job(name="x")}, "the items of pool"),
        (lambda c: {3: Job(name="x")}, "the items of pool"),
        (
            lambda c: {"a": "x"},
            'the input of item "a" of pool "worker" in state "working" raised TypeError',
        ),
    ],
)
def test_items_that_are_none_are_a_fault(items: Any, text: str) -> None:
    fault = Run(team(items=items)).view.fault

    assert fault is not None
    assert fault.startswith(text)


def test_a_run_can_be_cancelled_with_its_items() -> None:
    run = Run(team())

    assert len(run.machine.cancel(run.step.snapshot).commands) == 2


class PoolDoor(BaseModel):
    cap: int = 2


class Wake(ExternalEvent):
    pass


async def nothing(active: tuple[str, ...]) -> Next[Job] | None:
    return None


def jobs(
    source: Source[Job] | None = None, **options: Any
) -> BuiltMachine[PoolDoor, Any, PoolOutput[Out]]:
    return pool(
        worker(),
        door=PoolDoor,
        source=source or Source(next=nothing, wake=Wake, poll_every=timedelta(minutes=1)),
        item_id=lambda job: job.name,
        item_input=lambda job, door: job,
        cap=lambda door: door.cap,
        **options,
    )


def asked(run: Run) -> str:
    """Return the key of the question that the pool has asked in its last step."""
    (key,) = [one.split()[1] for one in run.said if one.endswith(":task.next")]
    return key


def item(name: str | None, open: int = 0) -> Any:
    return {"id": name, "input": None if name is None else {"name": name}, "open": open}


def test_a_pool_asks_until_it_is_full_or_there_is_nothing() -> None:
    run = Run(jobs(), {"cap": 2})

    run.done(asked(run), item("one"))
    assert actors(run) == ["one"]
    run.done(asked(run), item("two"))

    assert actors(run) == ["one", "two"]
    assert run.value == {"running": "waiting"}
    assert run.context["active"] == {"one": {"name": "one"}, "two": {"name": "two"}}


def test_a_settled_worker_asks_again() -> None:
    run = Run(jobs(), {"cap": 1})
    run.done(asked(run), item("one"))
    run.gate("one.waits", "finish", text="x")

    assert run.context["items"] == {"one": {"text": "one"}}
    run.done(asked(run), item(None))
    assert run.value == {"running": "waiting"}


def test_a_worker_that_settles_while_the_source_is_asked_asks_once_more() -> None:
    run = Run(jobs(), {"cap": 2})
    run.done(asked(run), item("one"))
    before = asked(run)
    run.gate("one.waits", "finish", text="x")
    assert run.said == ["stop_task running#1:pool.worker@4.one/waits#1:task.check"]

    run.done(before, item(None))

    assert asked(run) != before


def test_a_pool_is_woken_by_its_event_and_by_time() -> None:
    run = Run(jobs(), {"cap": 1})
    run.done(asked(run), item(None))
    (timer,) = [one.split()[1] for one in run.said]
    run.gate("source", "wake")
    run.done(asked(run), item(None))
    (timer,) = [one.split()[1] for one in run.said]
    run.fired(timer)
    run.done(asked(run), item("one"))

    # Full: nothing is asked before a worker has settled.
    assert run.gate("source", "wake").said == []


def test_an_item_that_runs_already_is_as_good_as_none() -> None:
    run = Run(jobs(), {"cap": 3})
    run.done(asked(run), item("one"))

    run.done(asked(run), item("one"))

    assert (actors(run), run.value) == (["one"], {"running": "waiting"})


@pytest.mark.parametrize(("open", "status"), [(0, "drained"), (2, "deadlocked")])
def test_a_pool_may_end_when_there_is_nothing_more(open: int, status: str) -> None:
    run = Run(jobs(on_drained="final"), {"cap": 1})
    run.done(asked(run), item("one"))
    run.gate("one.waits", "finish", text="x")

    run.done(asked(run), item(None, open=open))

    assert run.view.status == "done"
    assert run.view.output == {"status": status, "items": {"one": {"text": "one"}}, "faults": {}}


def test_a_worker_that_fails_is_told_of_and_the_pool_goes_on() -> None:
    run = Run(jobs(on_drained="final"), {"cap": 1})
    run.done(asked(run), item("one"))
    run.failed("running#1:pool.worker@4.one/waits#1:task.check", "no")

    run.done(asked(run), item(None))

    assert run.view.model_dump()["output"]["faults"] == {
        "one": 'task "check" failed and no .failed(…) takes it: no'
    }


def test_the_task_of_a_pool_asks_the_source() -> None:
    async def next_job(active: tuple[str, ...]) -> Next[Job] | None:
        answers: dict[tuple[str, ...], Next[Job] | None] = {
            (): Next(item=Job(name="one")),
            ("one",): Next(item=Job(name="two"), open=3),
        }
        return answers.get(active, None if len(active) > 2 else Next(open=1))

    machine = jobs(Source(next=next_job, wake=Wake))

    def ask(*active: str) -> Any:
        return asyncio.run(machine.run_task("next", {"active": list(active), "door": {"cap": 1}}))

    assert ask() == item("one")
    assert ask("one") == item("two", open=3)
    assert ask("one", "two") == item(None, open=1)
    assert ask("one", "two", "three") == item(None)


def test_a_cap_that_is_none_is_a_fault() -> None:
    assert "cap= returned 0" in str(Run(jobs(), {"cap": 0}).view.fault)


def test_a_composer_reaches_the_worker_through_the_pool() -> None:
    machine = jobs()
    bound = customize(machine, agents={"coder": {"model": "a/b"}})

    assert [visit.path for visit in visits(bound)] == [(), ()]
    assert bound.children["worker"].agents["coder"].model == "a/b"
    assert machine.children["worker"].agents["coder"].model == "x/y"
    assert bound.shape() == machine.shape()
    with pytest.raises(BuildRefused, match="names the Agent 'nobody'"):
        customize(machine, agents={"nobody": {"model": "a/b"}})


def test_composed_pools_are_woken_each_at_its_own_gate() -> None:
    m = Machine("two")
    both = m.parallel("both", initial=True)
    for name in ("left", "right"):
        both.state(name).invoke(m.child(name, jobs()), lambda c: PoolDoor())
    machine = m.build()

    assert desk.start(machine).gates == ["left.source", "right.source"]
    assert desk.start(jobs(), PoolDoor()).gates == ["source"]
    assert "waits at Gate left.source" in charts.draw(machine.chart)
    told = json.dumps(machine.children["left"].document())
    assert '"gate": {"id": "source"' in told


def test_what_is_wrong_with_a_pool_is_said_at_once() -> None:
    bad: Any = "worker"
    with pytest.raises(BuildRefused) as refused:
        pool(
            bad,
            door=PoolDoor,
            source=Source(next=nothing),
            item_id=lambda job: "x",
            item_input=lambda job, door: job,
            cap=0,
        )

    assert refused.value.problems == (
        "pool \"pool\" is given the worker 'worker': give what .build() returned",
        'pool "pool" would wait for ever once its Source has no item: give it wake= or '
        'poll_every=, or on_drained="final"',
        'pool "pool" has cap=0: it is a number from 1 on, or a function of the door',
    )
    with pytest.raises(BuildRefused, match="has no Source with an `async def` next="):
        jobs(bad)


def test_a_state_may_run_items_a_child_and_a_task_at_once() -> None:
    m = Machine("many", context=Ctx, start=lambda _: Ctx(jobs={"a": "Ann"}))
    working = m.state("working", initial=True)
    child = m.child("worker", worker())
    working.run(m.task("check", check), lambda c: "x").done()
    working.each(child, lambda c: {item: Job(name=name) for item, name in c.jobs.items()})
    working.invoke(child, lambda c: Job(name="one"), id="one")
    run = Run(m.build())

    assert actors(run) == ["one", "a"]
    assert [one.model_dump()["key"] for one in run.machine.cancel(run.step.snapshot).commands] == [
        "working#1:task.check",
        "working#1:pool.worker@2.a/waits#1:task.check",
        "working#1:child.worker.1/waits#1:task.check",
    ]
