"""Turns: what a state asks of an Agent, in five fields and no more.

`prompt` and `cwd` are the Frame of the Turn: what it is about and where it works. `continue_` says
whether the Agent's one conversation in this Machine goes on. `model` and `thinking_level` are
Dials, which the Agent's definition sets when the Turn does not.

Source: spec/authoring.md §2.5.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, get_args

from pydantic import JsonValue

from ..snapshot import json_text
from .agents import ThinkingLevel, is_model


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One question to an Agent.

    Args:
        prompt: what it is about.
        cwd: an absolute path; in a Workspace with one Repo Slot, that slot's Worktree when absent.
        continue_: go on with the Agent's conversation in this Machine; else a fresh one.
        model: `<provider>/<model id>`, in place of the definition's.
        thinking_level: in place of the definition's.

    Raises:
        TypeError: a field that a Turn does not have.
        ValueError: a value that its field does not take.
    """

    prompt: str
    cwd: PurePosixPath | str | None = None
    continue_: bool = False
    model: str | None = None
    thinking_level: ThinkingLevel | None = None

    if not TYPE_CHECKING:

        def __new__(cls, *given: Any, **named: Any) -> Turn:
            """Refuse a field that there is not, with those that there are."""
            unknown = [name for name in named if name not in _FIELDS]
            if given or unknown:
                what = (
                    f"no field {', '.join(map(repr, unknown))}" if unknown else "only named fields"
                )
                raise TypeError(f"a Turn has {what} (its fields: {', '.join(_FIELDS)})")
            return object.__new__(cls)

    def __post_init__(self) -> None:
        if not isinstance(self.prompt, str) or not self.prompt.strip():
            raise ValueError("a Turn needs a prompt")
        if self.cwd is not None and not PurePosixPath(self.cwd).is_absolute():
            raise ValueError(f"the cwd {str(self.cwd)!r} of a Turn is not an absolute path")
        if not isinstance(self.continue_, bool):
            raise ValueError(f"continue_ of a Turn is {self.continue_!r}, and not True or False")
        if self.model is not None and not is_model(self.model):
            raise ValueError(f'the model {self.model!r} of a Turn is not "<provider>/<model id>"')
        if self.thinking_level not in (None, *get_args(ThinkingLevel)):
            raise ValueError(f"a Turn has the thinking_level {self.thinking_level!r}")


_FIELDS: Final = tuple(field.name for field in fields(Turn))


def encode_turn(slot: str, value: Any) -> JsonValue:
    """Return what a state asks of an Agent as JSON.

    Raises:
        ValueError: it is no Turn, or holds half of a surrogate pair; the text names the Agent and
            the whole surface, and never holds what it was.
    """
    if not isinstance(value, Turn):
        raise ValueError(
            f'the Agent "{slot}" is given an object of type {type(value).__name__}, and not a '
            f"Turn({', '.join(_FIELDS)})"
        )
    told: JsonValue = {
        "prompt": value.prompt,
        "cwd": None if value.cwd is None else str(value.cwd),
        "continue": value.continue_,
        "model": value.model,
        "thinking_level": value.thinking_level,
    }
    json_text(told)
    return told


def decode_turn(value: JsonValue) -> Turn:
    """Return the Turn that `encode_turn` wrote.

    Raises:
        ValueError: it is no such JSON.
        TypeError: as `Turn`.
    """
    if not isinstance(value, dict):
        raise ValueError("a Turn is a JSON object")
    told: dict[str, Any] = {
        "continue_" if key == "continue" else key: item for key, item in value.items()
    }
    return Turn(**told)
