"""`customize`: the same Machine with other parts.

It binds what the author left Open and retunes the rest; nothing can be added or taken away, so the
shape stays, and a run that is under way does not drift. What was given is never changed.

The top-level keys are typed, and for the Machines that the Kit ships the slots too
(`jr2.parts.shipped`). Else slot names are the Machine's own, so they are checked here: every name
that the Machine does not have is said at once, with those that it has.

Source: spec/authoring.md §2.13, design §4.2, ADR-0049.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypedDict, TypeVar, cast, overload

from ..built import BuiltMachine
from ..errors import BuildRefused
from ..run_data import Context
from . import agents as agent_rules
from . import effect_rules
from .agents import AgentDefinition, AgentOverride
from .effects import EffectDefinition, EffectOverride
from .opening import Opening, is_open
from .repos import RepoValue, slot_problem, value_problem
from .shipped import Named, NoParts, TaskAgents, TaskMachine
from .sizes import ResourcesValue, read
from .workspace_chart import rebuilt
from .workspaces import (
    SandboxParts,
    UserContainer,
    image_problem,
    repos_problems,
    user_problems,
)

C = TypeVar("C", bound=Context)
T = TypeVar("T")
D = TypeVar("D")
O = TypeVar("O")  # noqa: E741 - what a run ends with


class Parts(TypedDict, total=False):
    """What `customize` takes, also for a composed Machine: `actors={"<slot>": {…}}`."""

    agents: Mapping[str, AgentOverride]
    effects: Mapping[str, EffectOverride]
    actors: Mapping[str, Parts]
    repos: Mapping[str, RepoValue[Any]]
    image: str
    effector: str
    user: str | UserContainer
    resources: ResourcesValue


WRAPPER: Final = ("repos", "image", "effector", "user", "resources")
"""The keys that belong to the `workspace()` of a Machine."""
_KEYS: Final = ("agents", "effects", "actors", *WRAPPER)
_WHO: Final = "customize()"


@overload
def customize(
    machine: TaskMachine[D, C, O],
    *,
    agents: TaskAgents | None = None,
    effects: NoParts | None = None,
    actors: NoParts | None = None,
    repos: Mapping[str, RepoValue[D]] | None = None,
    image: str | None = None,
    effector: str | None = None,
    user: str | UserContainer | None = None,
    resources: ResourcesValue | None = None,
) -> TaskMachine[D, C, O]: ...


@overload
def customize(
    machine: Named[D, C, O],
    *,
    agents: Mapping[str, AgentOverride] | None = None,
    effects: Mapping[str, EffectOverride] | None = None,
    actors: Mapping[str, Parts] | None = None,
    repos: Mapping[str, RepoValue[D]] | None = None,
    image: str | None = None,
    effector: str | None = None,
    user: str | UserContainer | None = None,
    resources: ResourcesValue | None = None,
) -> BuiltMachine[D, C, O]: ...


def customize(
    machine: Any,
    *,
    agents: Mapping[str, Any] | None = None,
    effects: Mapping[str, Any] | None = None,
    actors: Mapping[str, Any] | None = None,
    repos: Mapping[str, RepoValue[Any]] | None = None,
    image: str | None = None,
    effector: str | None = None,
    user: str | UserContainer | None = None,
    resources: ResourcesValue | None = None,
) -> Any:
    """Return a new Machine with some parts bound or retuned; the one given stays as it is.

    Args:
        machine: a built Machine; of a `workspace()`, Agents, Effects and actors are its body's.
        agents: what is set anew of each Agent, by slot.
        effects: what is set anew of each Effect, by slot.
        actors: the same again for composed Machines, by slot.
        repos: what each Repo Slot resolves to; where the author left the map Open, its slots.
        image: the Sandbox Image.
        effector: the image of the Sandbox's Effector.
        user: the User Container.
        resources: fields of the Size, over those that `workspace()` states.

    Raises:
        BuildRefused: a name that the Machine does not have, a part that breaks its rules, or a key
            of a Sandbox where there is none; the text has a line for each.
    """
    given = {
        "agents": agents,
        "effects": effects,
        "actors": actors,
        "repos": repos,
        "image": image,
        "effector": effector,
        "user": user,
        "resources": resources,
    }
    if not isinstance(machine, BuiltMachine):
        raise BuildRefused(f"customize() is given {machine!r}: give what .build() returned")
    made = _Customized(machine, {key: value for key, value in given.items() if value is not None})
    if made.problems:
        raise BuildRefused(*made.problems)
    return made.machine


class _Customized:
    """One Machine with new parts, and each problem that was found on the way."""

    def __init__(self, machine: BuiltMachine[Any, Any, Any], given: Mapping[str, Any]) -> None:
        self.problems: list[str] = []
        self._where = f'customize(…) of machine "{machine.id}"'
        known = {key: value for key, value in given.items() if key in _KEYS}
        for key in given:
            if key not in _KEYS:
                self._wrong(f"has the key {key!r} (keys: {', '.join(_KEYS)})")
        self.machine = self._made(machine, known)

    def _wrong(self, problem: str) -> None:
        self.problems.append(f"{self._where} {problem}")

    def _made(
        self, machine: BuiltMachine[Any, Any, Any], given: Mapping[str, Any]
    ) -> BuiltMachine[Any, Any, Any]:
        sandbox = machine.sandbox
        if machine.wraps is not None:
            inside = self._made(machine.children[machine.wraps], given)
            return machine.replaced(
                agents=machine.agents, effects=machine.effects, children={machine.wraps: inside}
            )
        if sandbox is None:
            misplaced = [key for key in given if key in WRAPPER]
            if misplaced:
                self._wrong(
                    f"gives {', '.join(misplaced)}, which belong to a Sandbox, and no workspace() "
                    "is around it"
                )
            return self._parts(machine, given)
        inner = {key: value for key, value in given.items() if key not in WRAPPER}
        nested = sandbox.body.sandbox is not None
        outer = {key: value for key, value in given.items() if key in WRAPPER}
        body = self._made(sandbox.body, inner) if inner or nested else sandbox.body
        return rebuilt(machine, self._sandbox(dataclasses.replace(sandbox, body=body), outer))

    def _parts(
        self, machine: BuiltMachine[Any, Any, Any], given: Mapping[str, Any]
    ) -> BuiltMachine[Any, Any, Any]:
        agents = dict(machine.agents)
        for slot, override in self._slots("agents", "Agent", given, machine.agents):
            agents[slot] = self._agent(slot, machine.agents[slot], override)
        effects = dict(machine.effects)
        for slot, override in self._slots("effects", "Effect", given, machine.effects):
            effects[slot] = self._effect(slot, machine.effects[slot], override)
        children = {}
        for slot, override in self._slots("actors", "composed Machine", given, machine.actors):
            child = _Customized(machine.children[slot], override)
            self.problems += child.problems
            children[slot] = child.machine
        return machine.replaced(agents=agents, effects=effects, children=children)

    def _slots(
        self, key: str, what: str, given: Mapping[str, Any], known: Mapping[str, Any]
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield what is given for each slot that the Machine has, and note the others."""
        overrides = given.get(key, {})
        if not isinstance(overrides, Mapping):
            self._wrong(f"gives {key}={overrides!r}: give a dict by slot")
            return
        for slot, override in overrides.items():
            if slot not in known:
                listed = ", ".join(known) or "none"
                self._wrong(f"names the {what} {slot!r}, which it does not have (it has: {listed})")
            elif not isinstance(override, Mapping):
                self._wrong(f'gives {override!r} for the {what} "{slot}": give a dict')
            else:
                yield slot, override

    def _agent(
        self, slot: str, stock: AgentDefinition, override: Mapping[str, Any]
    ) -> AgentDefinition:
        what = f'Agent "{slot}"'
        return self._layered(what, stock, override, agent_rules.problems, slot)

    def _effect(
        self, slot: str, stock: EffectDefinition[Any, Any], override: Mapping[str, Any]
    ) -> EffectDefinition[Any, Any]:
        what = f'Effect "{slot}"'
        return self._layered(what, stock, override, effect_rules.problems, slot)

    def _layered(
        self,
        what: str,
        stock: T,
        override: Mapping[str, Any],
        problems: Callable[[str, T], list[str]],
        slot: str,
    ) -> T:
        # A definition is a dataclass; the type that both kinds share does not say so.
        fields = [field.name for field in dataclasses.fields(cast("Any", stock))]
        unknown = [name for name in override if name not in fields]
        for name in unknown:
            self._wrong(f"sets {name!r} of the {what} (its fields: {', '.join(fields)})")
        if unknown:
            return stock
        made: T = dataclasses.replace(cast("Any", stock), **override)
        for problem in problems(slot, made):
            self._wrong(problem)
        return made

    def _sandbox(self, parts: SandboxParts, given: Mapping[str, Any]) -> SandboxParts:
        changes: dict[str, Any] = {}
        for key in ("image", "effector"):
            if key in given:
                wrong = image_problem(key, given[key])
                if wrong is not None:
                    self._wrong(f"gives {wrong}")
                changes[key] = given[key]
        if "user" in given:
            user, size, found = user_problems(given["user"])
            changes |= {"user": user, "user_size": size}
            for problem in found:
                self._wrong(f"gives {problem}")
        if "resources" in given:
            fields, found = read(given["resources"])
            changes["resources"] = ((_WHO, fields), *parts.resources)
            for problem in found:
                self._wrong(f"gives {problem}")
        if "repos" in given:
            changes["repos"] = self._repos(parts.repos, given["repos"])
        return dataclasses.replace(parts, **changes)

    def _repos(self, stock: Mapping[str, Any] | Opening, given: Any) -> Any:
        if is_open(stock):
            found = repos_problems(given, who="a Machine whose Repo Slots are open")
            if is_open(given):
                found = ["repos=OPEN, which binds nothing"]
            for said in found:
                self._wrong(f"gives {said}")
            return stock if found else MappingProxyType(dict(given))
        if not isinstance(given, Mapping):
            self._wrong(f"gives repos={given!r}: give a dict by Repo Slot")
            return stock
        made = dict(stock)
        for slot, value in given.items():
            if slot not in stock:
                listed = ", ".join(stock)
                self._wrong(
                    f"names the Repo Slot {slot!r}, which it does not have (it has: {listed})"
                )
                continue
            problem = slot_problem(slot) or value_problem(slot, value)
            if problem is not None:
                self._wrong(f"gives {problem}")
            made[slot] = value
        return MappingProxyType(made)
