"""Open parts: what nobody bound, and the `customize(…)` line that binds it.

Source: design §3 and §3.1 (the texts), spec/authoring.md §5 item 9, ADR-0049, ADR-0051, ADR-0054.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from .carried import Visit, visits
from .effects import open_fields
from .opening import is_open

if TYPE_CHECKING:
    from ..built import BuiltMachine

IMPORT: Final = "<import>"
"""What a printed line calls the Machine; a person puts in the name that they import it as."""

_SAMPLES: Final[Mapping[str, Any]] = {
    "url": "https://<host>/<path>",
    "argv": ["<program>", "<arg>"],
    "secret": "<name>",
}
_MODEL: Final = "<provider>/<model>"
_URL: Final = "<url>"
_REPOS: Final = "ADR-0051"
_PARTS: Final = "ADR-0054"
_SLOTS: Final = "ADR-0049"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPart:
    """One part that is Open, where it is, and how it is bound."""

    kind: Literal["slot", "slots", "agent", "effect"]
    what: str
    """As a person reads it: `Repo Slot "app" open`, without the place."""
    binding: Mapping[str, Any]
    """The arguments of `customize` on the Machine itself that bind it to samples."""
    path: tuple[str, ...]
    """The actor slots that lead to it from the registered Machine."""
    inline: bool
    """It is on a Machine that no slot leads to."""
    adr: str


def find(machine: BuiltMachine[Any, Any, Any]) -> list[OpenPart]:
    """Return every Open part of a Machine and of those composed in it, in the order of the walk."""
    return [part for visit in visits(machine) for part in _parts(visit)]


def refusals(workflow: str, machine: BuiltMachine[Any, Any, Any]) -> list[str]:
    """Return a refusal for each Open part of a registered Machine, without the prefix."""
    return [refusal(workflow, part) for part in find(machine)]


def refusal(workflow: str, part: OpenPart) -> str:
    """Return the refusal of one Open part."""
    leaves = f'workflow "{workflow}" leaves {part.what} open'
    if part.inline:
        return (
            f"{leaves} on a Machine invoked inline — no customize() reaches an actor without a slot "
            f'key; declare it with .child("<slot>", …) and bind it there  ({_SLOTS}, {part.adr})'
        )
    return (
        f"{leaves}{place(part.path)} — bind it where the Machine is registered: "
        f"machine = {customize_line(part.binding, part.path)}  ({part.adr})"
    )


def place(path: Sequence[str]) -> str:
    """Return where a Machine is composed, with a space before it; empty for the registered one."""
    if not path:
        return ""
    return f" (on the Machine composed as {' → '.join(json.dumps(slot) for slot in path)})"


def customize_line(binding: Mapping[str, Any], path: Sequence[str] = ()) -> str:
    """Return the call of `customize` that gives a Machine some parts.

    It is Python that can be pasted, once `<import>` is a name and each other `<…>` has its value.

    Args:
        binding: the arguments on the Machine that has the parts; texts, lists and dicts.
        path: the actor slots that lead to it.
    """
    arguments: Mapping[str, Any] = binding
    for slot in reversed(path):
        arguments = {"actors": {slot: arguments}}
    written = ", ".join(
        f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()
    )
    return f"customize({IMPORT}, {written})"


def _parts(visit: Visit) -> Iterator[OpenPart]:
    def part(kind: Literal["slot", "slots", "agent", "effect"], what: str, **told: Any) -> OpenPart:
        return OpenPart(kind=kind, what=what, path=visit.path, inline=visit.inline, **told)

    repos = {} if visit.machine.sandbox is None else visit.machine.sandbox.repos
    if is_open(repos):
        binding = {"repos": {"<slot>": _URL}}
        yield part("slots", "its Repo Slots", binding=binding, adr=_REPOS)
    else:
        for slot, value in repos.items():
            if is_open(value):
                binding = {"repos": {slot: _URL}}
                yield part("slot", f'Repo Slot "{slot}"', binding=binding, adr=_REPOS)
    for slot, agent in visit.machine.agents.items():
        if is_open(agent.model):
            yield part(
                "agent",
                f'Agent "{slot}"',
                binding={"agents": {slot: {"model": _MODEL}}},
                adr=_PARTS,
            )
    for slot, effect in visit.machine.effects.items():
        fields = open_fields(effect)
        if fields:
            yield part(
                "effect",
                f'the {" and ".join(fields)} of Effect "{slot}"',
                binding={"effects": {slot: {name: _SAMPLES[name] for name in fields}}},
                adr=_PARTS,
            )
