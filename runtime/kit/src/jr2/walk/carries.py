"""What a Machine carries, as plain data for the Converge: each thing once.

Source: spec/authoring.md §5 (the walk), spec/converge.md §4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .. import repo_identity
from ..built import BuiltMachine
from ..config import Size
from ..parts.carried import Visit, carried, visits
from ..parts.effects import Push, place_of, secret_of
from ..parts.opening import is_open
from ..parts.repos import bound
from ..parts.sandbox_rules import has_effector, split_of
from .reports import (
    WalkedAgent,
    WalkedEffect,
    WalkedParts,
    WalkedPush,
    WalkedRepo,
    WalkedSandbox,
)

Machine = BuiltMachine[Any, Any, Any]


def parts(machine: Machine, resources: Size | None) -> WalkedParts:
    """Return what a Machine carries.

    Args:
        machine: a registered Machine.
        resources: the config's `sandbox.resources`.
    """
    found = carried(machine)
    repos: dict[str, WalkedRepo] = {}
    for binding in found.repos:
        identity = repo_identity.identify(binding.url)
        walked = WalkedRepo(
            url=binding.url, identity=identity.identity, key=identity.key, way=identity.way
        )
        repos.setdefault(identity.identity, walked)
    return WalkedParts(
        agents=[
            WalkedAgent(
                slot=slot,
                model=None if is_open(agent.model) else agent.model,
                workspace=agent.workspace,
            )
            for slot, agent in found.agents
        ],
        effects=[
            WalkedEffect(
                slot=slot, kind=effect.kind, place=place_of(effect), secret=secret_of(effect)
            )
            for slot, effect in found.effects
        ],
        repos=list(repos.values()),
        sandboxes=list(_sandboxes(machine, resources)),
        images=list(found.images),
        default_image=found.default_image,
        users=list(found.users),
        effector_images=list(found.effector_images),
        menu_only=found.menu_only,
        instance_effector=found.instance_effector,
    )


def _sandboxes(machine: Machine, resources: Size | None) -> Iterator[WalkedSandbox]:
    found = list(visits(machine))
    for visit in found:
        own = visit.machine.sandbox
        if own is None:
            continue
        split = split_of(own, resources)
        yield WalkedSandbox(
            path=list(visit.path),
            route=_route(machine, visit.path),
            image=own.image,
            user=None if own.user is None else own.user.image,
            effector=has_effector(own),
            memory=split.memory.amount,
            cpu=split.cpu.amount,
            pushes=list(_pushes(visit)),
        )


def _pushes(visit: Visit) -> Iterator[WalkedPush]:
    """Yield the Repo Slots that Effects in a Workspace push."""
    own = visit.machine.sandbox
    if own is None or is_open(own.repos):
        return
    slots = dict.fromkeys(
        effect.repo
        for below in visits(own.body)
        if below.sandbox is None
        for effect in below.machine.effects.values()
        if isinstance(effect, Push)
    )
    for slot in slots:
        if slot in own.repos and not is_open(own.repos[slot]):
            binding = bound(own.repos[slot])
            yield WalkedPush(slot=slot, url=None if binding is None else binding.url)


def _route(machine: Machine, path: Sequence[str]) -> list[str]:
    """Return the states that invoke the Machines on a way of actor slots; a slot that none does."""
    route: list[str] = []
    for slot in path:
        machine = _meant(machine)
        states = [
            node.id
            for node in machine.chart.nodes
            for one in node.invocations
            if one.kind in ("child", "pool") and one.slot == slot
        ]
        route.append(states[0] if states else slot)
        machine = machine.children[slot]
    return route


def _meant(machine: Machine) -> Machine:
    """Return the Machine that slots are of: the body of a Workspace, the worker of a pool."""
    if machine.sandbox is not None:
        return _meant(machine.sandbox.body)
    return machine if machine.wraps is None else _meant(machine.children[machine.wraps])
