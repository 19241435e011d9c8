"""`machine.provide(…)`: the same Machine with stand-ins, for a test on a desk.

A stand-in takes the place of what does the work, under the slot of the part; what is around it
stays: the mapper that makes the input, the types that cross as JSON, the guards that judge what
comes back. So a test sees the Machine that is registered, and no pod, model or network.

- a task: a function of the input, `async` or not;
- an Agent: a function of the `Turn` that returns the event which it picks, or an `AgentFault`;
- an Effect: a function of its input that returns its result; what it raises is its failure.

Source: spec/authoring.md §2.2 (the test seam) and §8.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypedDict

from pydantic import BaseModel, JsonValue

from ..errors import BuildRefused
from ..events import Event
from ..snapshot import json_text
from ..tasks import Task
from .turns import Turn, decode_turn

if TYPE_CHECKING:
    from ..built import BuiltMachine

FakeAgent = Callable[[Turn], Event]
FakeEffect = Callable[[Any], BaseModel]
FakeTask = Callable[[Any], Any] | Callable[[], Any]


class Fakes(TypedDict, total=False):
    """What `provide` takes, also for a composed Machine: `actors={"<slot>": {…}}`."""

    agents: Mapping[str, FakeAgent]
    effects: Mapping[str, FakeEffect]
    tasks: Mapping[str, FakeTask]
    actors: Mapping[str, Fakes]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Provided:
    """The stand-ins of one Machine, by slot."""

    agents: Mapping[str, FakeAgent] = dataclasses.field(default_factory=dict)
    effects: Mapping[str, FakeEffect] = dataclasses.field(default_factory=dict)
    tasks: frozenset[str] = frozenset()
    """The tasks whose function is a stand-in."""


NOTHING: Final = Provided()
_WHAT: Final = {"agents": "Agent", "effects": "Effect", "tasks": "task", "actors": "Machine"}


def provide(
    machine: BuiltMachine[Any, Any, Any], fakes: Mapping[str, Mapping[str, Any]]
) -> BuiltMachine[Any, Any, Any]:
    """Return a Machine with stand-ins; the one given stays as it is.

    Args:
        machine: a built Machine; of a `workspace()`, the parts are its body's.
        fakes: by kind, then by slot.

    Raises:
        BuildRefused: a slot that the Machine does not have, or no function; a line for each.
    """
    if machine.sandbox is not None:
        from .workspace_chart import rebuilt

        body = provide(machine.sandbox.body, fakes)
        return rebuilt(machine, dataclasses.replace(machine.sandbox, body=body))
    if machine.wraps is not None:
        return _provide_inside(machine, machine.wraps, fakes)
    known: dict[str, Mapping[str, Any]] = {
        "agents": machine.agents,
        "effects": machine.effects,
        "tasks": machine.tasks,
        "actors": machine.actors,
    }
    problems = _problems(machine.id, known, fakes)
    children = {}
    for slot, inner in fakes.get("actors", {}).items():
        if slot in machine.actors:
            try:
                children[slot] = provide(machine.actors[slot], inner)
            except BuildRefused as refused:
                problems += refused.problems
    if problems:
        raise BuildRefused(*problems)
    made = machine.replaced(agents=machine.agents, effects=machine.effects, children=children)
    made.tasks = _stand_ins(machine, fakes.get("tasks", {}))
    made.provided = Provided(
        agents=MappingProxyType({**machine.provided.agents, **fakes.get("agents", {})}),
        effects=MappingProxyType({**machine.provided.effects, **fakes.get("effects", {})}),
        tasks=machine.provided.tasks | frozenset(fakes.get("tasks", {})),
    )
    return made


def _provide_inside(
    machine: BuiltMachine[Any, Any, Any], slot: str, fakes: Mapping[str, Mapping[str, Any]]
) -> BuiltMachine[Any, Any, Any]:
    """Give stand-ins to the one Machine that another one wraps; a task of its own name is its own."""
    tasks = fakes.get("tasks", {})
    own = {name: fake for name, fake in tasks.items() if name in machine.tasks}
    rest = {name: fake for name, fake in tasks.items() if name not in machine.tasks}
    inside = provide(machine.children[slot], {**fakes, "tasks": rest})
    made = machine.replaced(agents=machine.agents, effects=machine.effects, children={slot: inside})
    made.tasks = _stand_ins(machine, own)
    made.provided = dataclasses.replace(
        machine.provided, tasks=machine.provided.tasks | frozenset(own)
    )
    return made


def _stand_ins(
    machine: BuiltMachine[Any, Any, Any], fakes: Mapping[str, FakeTask]
) -> Mapping[str, Task[Any, Any]]:
    return MappingProxyType(
        {slot: _stand_in(task, fakes.get(slot)) for slot, task in machine.tasks.items()}
    )


def _problems(
    machine: str, known: Mapping[str, Mapping[str, Any]], fakes: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    found = []
    for kind, given in fakes.items():
        if kind not in known:
            found.append(f"has the key {kind!r} (keys: {', '.join(known)})")
            continue
        for slot, fake in given.items():
            if slot not in known[kind]:
                listed = ", ".join(known[kind]) or "none"
                found.append(
                    f"names the {_WHAT[kind]} {slot!r}, which it does not have (it has: {listed})"
                )
            elif kind != "actors" and not callable(fake):
                found.append(f'gives {fake!r} for the {_WHAT[kind]} "{slot}": give a function')
    return [f'provide(…) of machine "{machine}" {problem}' for problem in found]


def _stand_in(task: Task[Any, Any], fake: FakeTask | None) -> Task[Any, Any]:
    if fake is None:
        return task
    called: Callable[..., Any] = fake

    async def function(*given: Any) -> Any:
        made = called(*given)
        return await made if inspect.isawaitable(made) else made

    return dataclasses.replace(task, function=function)


def take_turn(machine: BuiltMachine[Any, Any, Any], slot: str, turn: JsonValue) -> Event:
    """Return what the stand-in of an Agent picks.

    Args:
        machine: the Machine that carries the Agent.
        slot: the Agent.
        turn: the input of the `start_turn` command.

    Raises:
        KeyError: the Agent has no stand-in.
        TypeError: what it returned is no event.
    """
    picked = machine.provided.agents[slot](decode_turn(turn))
    if not isinstance(picked, Event):
        raise TypeError(f'the stand-in of Agent "{slot}" picked {picked!r}, which is no event')
    return picked


def run_effect(machine: BuiltMachine[Any, Any, Any], slot: str, input: JsonValue) -> JsonValue:
    """Return what the stand-in of an Effect did, as JSON.

    Args:
        machine: the Machine that carries the Effect.
        slot: the Effect.
        input: the input of the `run_effect` command.

    Raises:
        KeyError: the Effect has no stand-in.
        TypeError: what it returned is no result of this kind of Effect.
        Exception: whatever the stand-in raises; it is the Effect's failure.
    """
    definition = machine.effects[slot]
    fake = machine.provided.effects[slot]
    result = fake(definition.takes.model_validate_json(json_text(input)))
    if not isinstance(result, definition.gives):
        raise TypeError(
            f'the stand-in of Effect "{slot}" returned {result!r}, and not a '
            f"{definition.gives.__name__}"
        )
    told: JsonValue = result.model_dump(mode="json")
    return told
