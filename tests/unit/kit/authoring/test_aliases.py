"""Fields with aliases: what jr2 writes for itself is read back, and a person sends the alias."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any, Generic, TypeVar, cast

import pytest
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    computed_field,
    create_model,
)

from jr2 import (
    AgentEvent,
    BuildRefused,
    BuiltMachine,
    Context,
    Event,
    ExternalEvent,
    InternalEvent,
    Machine,
    Message,
    Next,
    Source,
    Turn,
    WorkspaceSpec,
    pool,
    workspace,
)
from jr2.events import description, event_name
from jr2.testing import Run, start

SPELT: dict[str, tuple[Any, Any]] = {
    "alias": (Field(alias="htmlUrl"), {"htmlUrl": 1}),
    "validation alias": (Field(validation_alias="htmlUrl"), {"htmlUrl": 1}),
    "serialization alias": (Field(serialization_alias="htmlUrl"), {"url": 1}),
    "one alias for each way": (
        Field(validation_alias="in", serialization_alias="out"),
        {"in": 1},
    ),
    "choices": (Field(validation_alias=AliasChoices("a", "b")), {"b": 1}),
    "path": (Field(validation_alias=AliasPath("a", 0)), {"a": [1]}),
}


@pytest.fixture(params=SPELT)
def spelt(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    """A field of a model, and the JSON that the model is read from."""
    return SPELT[request.param]


def model(base: type[BaseModel], field: Any) -> Any:
    """Return a model with a field `url` under a base."""
    return create_model("Spelt", __base__=base, url=(int, field))


class Go(ExternalEvent):
    """Go on."""


class Got(Context):
    got: int = 0


def test_a_context_keeps_its_fields(spelt: tuple[Any, Any]) -> None:
    field, read = spelt
    spelling = model(Context, field)
    m = Machine("m", context=spelling, start=lambda i: spelling.model_validate(read))
    waiting, done = m.state("waiting", initial=True), m.final("done")
    waiting.gate()
    waiting.on(Go, to=done, assign=lambda c, e: c.set(url=cast(Any, c).url + 1))
    run: Any = start(m.build())
    assert run.fault is None
    run.send(Go())
    assert (run.status, run.context.url) == ("done", 2)


def test_a_task_gets_and_gives_models(spelt: tuple[Any, Any]) -> None:
    field, read = spelt
    spelling = model(BaseModel, field)

    async def again(issue: Any) -> Any:
        return issue.model_copy(update={"url": issue.url + 1})

    again.__annotations__ = {"issue": spelling, "return": spelling}
    m = Machine("m", context=Got, start=lambda i: Got())
    running = m.state("running", initial=True)
    running.run(m.task("again", again), lambda c: spelling.model_validate(read)).done(
        to=m.final("done"), assign=lambda c, issue: c.set(got=issue.url)
    )
    machine = m.build()
    run = start(machine)
    run.run_task()
    assert (run.fault, run.context.got) == (None, 2)
    answered = start(machine)
    answered.task_returns(spelling.model_validate(read))
    assert answered.context.got == 1
    answered = start(machine)
    answered.task_returns(read)
    assert answered.context.got == 1


def child(door: Any, read: Any) -> BuiltMachine[Any, Any, Any]:
    """Return a Machine that ends with what it was started with."""

    class Held(Context):
        url: int

    m: Any = Machine(
        "child", door=door, context=Held, output=door, start=lambda i: Held(url=i.door.url)
    )
    m.state("first", initial=True).always(to=m.final("done", lambda c: door.model_validate(read)))
    built: BuiltMachine[Any, Any, Any] = m.build()
    return built


def test_a_child_gets_its_door_and_gives_its_output(spelt: tuple[Any, Any]) -> None:
    field, read = spelt
    door = model(BaseModel, field)
    m = Machine("parent", context=Got, start=lambda i: Got())
    running = m.state("running", initial=True)
    running.invoke(m.child("child", child(door, read)), lambda c: door.model_validate(read)).done(
        to=m.final("done"), assign=lambda c, ended: c.set(got=ended.url)
    )
    run = start(m.build())
    assert (run.fault, run.status, run.context.got) == (None, "done", 1)


def test_the_body_of_a_workspace_gets_the_door(spelt: tuple[Any, Any]) -> None:
    field, read = spelt
    door = model(BaseModel, field)
    body: Any = Machine("body", inside=door, context=Got, start=lambda i: Got(got=i.door.url))
    body.state("open", initial=True)
    machine: Any = workspace(
        body.build(),
        door=door,
        repos={"app": "https://github.com/acme/app"},
        spec=lambda d: WorkspaceSpec(branch="b"),
    )
    run: Run[Any, Any] = start(machine, read)
    assert run.fault is None
    told: Any = run.children
    assert told[0]["context"]["got"] == 1


def test_the_worker_of_a_pool_gets_its_door(spelt: tuple[Any, Any]) -> None:
    field, read = spelt

    class Spelling(BaseModel):
        model_config = ConfigDict(strict=True)

        day: date = date(2026, 1, 2)

    door = model(Spelling, field)

    items = [7]

    async def next_item(active: tuple[str, ...]) -> Next[int] | None:
        return Next(item=items.pop()) if items else None

    machine: Any = pool(
        child(door, read),
        door=door,
        source=Source(next=next_item),
        item_id=lambda item: f"i{item}",
        item_input=lambda item, given: given,
        on_drained="final",
    )
    run: Run[Any, Any] = start(machine, read)
    run.run_task()
    run.run_task()
    ended: Any = run.output
    assert (run.fault, ended["items"]) == (None, {"i7": {"day": "2026-01-02", "url": 1}})


@pytest.mark.parametrize("base", [ExternalEvent, Event, AgentEvent])
def test_an_event_is_sent_and_picked(spelt: tuple[Any, Any], base: type[Event]) -> None:
    field, read = spelt
    event = model(base, field)
    m = Machine("m", context=Got, start=lambda i: Got())
    waiting = m.state("waiting", initial=True)
    if base is AgentEvent:
        agent = m.agent("a", model="p/m", instructions="x", workspace="none")
        waiting.turn(agent, lambda c: Turn(prompt="x"))
    else:
        waiting.gate()
    waiting.on(event, to=m.final("done"), assign=lambda c, e: c.set(got=cast(Any, e).url))
    run = start(m.build())
    sent = event.model_validate(read)
    if base is AgentEvent:
        run.pick(sent)
    else:
        run.send(sent)
    assert (run.status, run.context.got) == ("done", 1)


def test_fields_that_swap_their_names_stay_apart() -> None:
    class Door(BaseModel):
        left: int = Field(alias="right")
        right: int = Field(alias="left")

    class Held(Context):
        left: int

    c: Any = Machine("child", door=Door, context=Held, start=lambda i: Held(left=i.door.left))
    c.state("open", initial=True)
    m = Machine("parent")
    m.state("running", initial=True).invoke(
        m.child("child", c.build()), lambda c: Door.model_validate({"left": 1, "right": 2})
    )
    told: Any = start(m.build()).children
    assert told[0]["context"] == {"left": 2}


def test_a_computed_field_follows_from_the_others() -> None:
    class Ctx(Context):
        n: int = 1

        @computed_field  # type: ignore[prop-decorator]
        @property
        def double(self) -> int:
            return self.n * 2

    m = Machine("m", context=Ctx, start=lambda i: Ctx())
    waiting = m.state("waiting", initial=True)
    waiting.gate()
    waiting.on(Go, to=m.final("done"), assign=lambda c, e: c.set(n=c.double))
    run = start(m.build())
    assert run.fault is None
    run.send(Go())
    assert (run.context.n, run.context.double) == (2, 4)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: model(ExternalEvent, Field(alias="type")),
            "event class Spelt has the alias `type`",
        ),
        (
            lambda: model(InternalEvent, Field(validation_alias=AliasChoices("a", "type"))),
            "event class Spelt has the alias `type` of `url`",
        ),
        (
            lambda: model(Message, Field(validation_alias=AliasPath("type", 0))),
            "message class Spelt has the alias `type` of `url`",
        ),
    ],
)
def test_no_alias_is_the_name_on_the_wire(make: Callable[[], object], text: str) -> None:
    with pytest.raises(BuildRefused) as refused:
        make()
    assert text in str(refused.value)


T = TypeVar("T")


class Found(ExternalEvent, Generic[T], name="found-one"):
    """Something was found."""

    item: T


class FoundNumber(Found[int]):
    """A number was found."""


def test_a_generic_event_of_one_type_is_that_event() -> None:
    assert event_name(Found[int]) == "found-one"
    assert description(Found[int]) == "Something was found."
    assert event_name(FoundNumber) == "found_number"
    m = Machine("m", context=Got, start=lambda i: Got())
    waiting = m.state("waiting", initial=True)
    waiting.gate()
    waiting.on(Found[int], to=m.final("done"), assign=lambda c, e: c.set(got=e.item))
    run = start(m.build())
    run.send(Found[int](item=3))
    assert run.context.got == 3


def test_a_generic_event_of_two_types_is_two_events_of_one_name() -> None:
    m = Machine("m")
    waiting = m.state("waiting", initial=True)
    waiting.on(Found[int]).on(Found[str])
    with pytest.raises(BuildRefused, match=r'two event classes called "found-one"'):
        m.build()
