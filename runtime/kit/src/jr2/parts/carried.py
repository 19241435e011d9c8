"""What a registered Machine carries, its own and of the Machines composed in it.

A Machine is visited once for each way that leads to it: through actor slots, declared or also
invoked, through inline invokes, and through the wrapper of a Workspace to its body, which adds
nothing to the way. Nothing is run, and nothing is read but the Machines.

Source: spec/authoring.md §5 (the walk).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from .agents import AgentDefinition
from .effects import EffectDefinition, Push, place_of, secret_of
from .opening import is_open
from .repos import Binding, bound
from .workspaces import SandboxParts

if TYPE_CHECKING:
    from ..built import BuiltMachine


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One Machine on the walk."""

    machine: BuiltMachine[Any, Any, Any]
    path: tuple[str, ...]
    """The actor slots that lead to it."""
    inline: bool
    """Somewhere on the way a Machine was invoked without a slot."""
    sandbox: SandboxParts | None
    """Of the nearest `workspace()`, be it this Machine or one around it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What a Machine needs to run, each thing once."""

    agents: tuple[tuple[str, AgentDefinition], ...]
    """By slot and definition."""
    models: tuple[str, ...]
    """The bound models, as a Turn calls them, in the order of the walk."""
    effects: tuple[tuple[str, EffectDefinition[Any, Any]], ...]
    secrets: tuple[str, ...]
    """The secrets of the config that an Effect names."""
    images: tuple[str, ...]
    """The Sandbox Images that a `workspace()` names."""
    default_image: bool
    """A `workspace()` names none, so the Instance's own is used."""
    users: tuple[str, ...]
    """The images of User Containers."""
    effector_images: tuple[str, ...]
    """The images that a `workspace()` names for its Effector."""
    repos: tuple[Binding, ...]
    """The bound Repos; those of a run are not known here."""
    menu_only: bool
    """An Agent runs on the Instance Harness."""
    composes_sandbox: bool
    instance_effector: bool
    sandbox_effector: bool
    pushes: bool


def visits(machine: BuiltMachine[Any, Any, Any]) -> Iterator[Visit]:
    """Yield a Machine and every Machine composed in it, outermost first."""
    yield from _visits(Visit(machine=machine, path=(), inline=False, sandbox=machine.sandbox))


def _visits(visit: Visit) -> Iterator[Visit]:
    yield visit
    machine = visit.machine
    if machine.sandbox is not None:
        body = machine.sandbox.body
        yield from _visits(_below(visit, body, visit.path, inline=visit.inline))
        return
    for slot, child in machine.children.items():
        if machine.chart.children[slot].inline:
            yield from _visits(_below(visit, child, visit.path, inline=True))
        elif slot == machine.wraps:
            yield from _visits(_below(visit, child, visit.path, inline=visit.inline))
        else:
            yield from _visits(_below(visit, child, (*visit.path, slot), inline=visit.inline))


def _below(
    above: Visit, machine: BuiltMachine[Any, Any, Any], path: tuple[str, ...], *, inline: bool
) -> Visit:
    sandbox = machine.sandbox or above.sandbox
    return Visit(machine=machine, path=path, inline=inline, sandbox=sandbox)


def carried(machine: BuiltMachine[Any, Any, Any]) -> Carried:
    """Return what a Machine needs to run."""
    found = list(visits(machine))
    agents = _once(item for visit in found for item in visit.machine.agents.items())
    effects = _once(item for visit in found for item in visit.machine.effects.items())
    places = {place_of(effect) for _, effect in effects}
    sandboxes = [visit.machine.sandbox for visit in found if visit.machine.sandbox is not None]
    return Carried(
        agents=agents,
        models=_once(agent.model for _, agent in agents if not is_open(agent.model)),
        effects=effects,
        secrets=_once(name for _, effect in effects if (name := secret_of(effect)) is not None),
        images=_once(one.image for one in sandboxes if one.image is not None),
        default_image=any(one.image is None for one in sandboxes),
        users=_once(one.user.image for one in sandboxes if one.user is not None),
        effector_images=_once(one.effector for one in sandboxes if one.effector is not None),
        repos=_once(
            binding
            for one in sandboxes
            if not is_open(one.repos)
            for value in one.repos.values()
            if (binding := bound(value)) is not None
        ),
        menu_only=any(agent.menu_only for _, agent in agents),
        composes_sandbox=bool(sandboxes),
        instance_effector="instance-effector" in places,
        sandbox_effector="sandbox-effector" in places,
        pushes=any(isinstance(effect, Push) for _, effect in effects),
    )


def _once(items: Iterable[T]) -> tuple[T, ...]:
    """Return each thing once, in the order of the walk; a definition may hold a dict or a list."""
    found: list[T] = []
    for item in items:
        if item not in found:
            found.append(item)
    return tuple(found)
