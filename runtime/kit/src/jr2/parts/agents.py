"""Agents: a model and its instructions, carried by a Machine under a slot.

The slot is the Agent's name wherever it is named: routes, conversations, logs, `customize`. What
the definition says goes to the Harness with each Turn, so an edit holds from the next Turn on.

Identity is what only the definition says: the instructions and the access to the Workspace. The
Dials, model and thinking level, may be set by a Turn too.

Source: spec/authoring.md §2.4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal, TypedDict, get_args

from .opening import Opening, is_open

Access = Literal["write", "read", "none"]
"""What an Agent may do in the Workspace; `none`: it has no Working tools and runs outside of it."""

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh"]

MODEL: Final = re.compile(r"[^/\s]+/\S+")
"""`<provider>/<model id>`; what follows the first `/` goes to the provider as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDefinition:
    """What a Machine says about an Agent; `Machine.agent` takes the same fields."""

    model: str | Opening
    instructions: str
    description: str | None = None
    """For people alone; no Harness gets it."""
    workspace: Access = "write"
    thinking_level: ThinkingLevel | None = None
    """`None`: the provider's own default."""

    @property
    def menu_only(self) -> bool:
        """Whether every Turn of it runs on the Instance Harness, for it works in no Workspace."""
        return self.workspace == "none"


@dataclass(frozen=True, slots=True, eq=False)
class Agent:
    """The handle of an Agent, made by `Machine.agent`; it is given to `State.turn`."""

    machine: object
    """The Machine that it belongs to, compared by identity."""
    slot: str

    def __repr__(self) -> str:
        return f"<Agent {self.slot!r}>"


class AgentOverride(TypedDict, total=False):
    """What `customize(…, agents={"<agent>": {…}})` sets anew; the rest stays as the author wrote."""

    model: str
    instructions: str
    description: str
    workspace: Access
    thinking_level: ThinkingLevel


def problems(slot: str, definition: AgentDefinition) -> list[str]:
    """Return each rule that a definition breaks, as what its Machine does wrong."""
    found = []
    if not is_open(definition.model) and not is_model(definition.model):
        found.append(f'the model {definition.model!r}, which is not "<provider>/<model id>"')
    if not isinstance(definition.instructions, str) or not definition.instructions.strip():
        found.append("no instructions")
    if definition.description is not None and not isinstance(definition.description, str):
        found.append(f"the description {definition.description!r}, which is no text")
    if definition.workspace not in get_args(Access):
        found.append(
            f"workspace={definition.workspace!r}, which is not one of {listed(get_args(Access))}"
        )
    if definition.thinking_level not in (None, *get_args(ThinkingLevel)):
        found.append(
            f"thinking_level={definition.thinking_level!r}, which is not one of "
            f"{listed(get_args(ThinkingLevel))}"
        )
    for what in ("model", "instructions", "description"):
        given = getattr(definition, what)
        if isinstance(given, str) and not is_utf8(given):
            found.append(f"{what}= that holds half of a surrogate pair, which is no text")
    return [f'has an Agent "{slot}" with {problem}' for problem in found]


def is_model(value: Any) -> bool:
    """Say whether a value names a model."""
    return isinstance(value, str) and MODEL.fullmatch(value) is not None


def is_utf8(text: str) -> bool:
    """Say whether a text can be written as UTF-8: one with half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def listed(names: tuple[str, ...]) -> str:
    """Return names as a person lists them in a refusal."""
    return ", ".join(f'"{name}"' for name in names)
