"""Effects: deterministic actions outside of a Machine, of four kinds, carried under a slot.

What is the same for every run stands in the definition on the slot, so that it can be read before
anything runs: the walk knows from it where the Effect runs and which secret it uses. What differs
from run to run is the input that a state gives.

| kind | definition | input | result |
| --- | --- | --- | --- |
| command | `Command` | `CommandInput` | `CommandResult` |
| http | `Http` | `HttpInput` | `HttpResult` |
| http, the body is a file of the Worktree | `HttpFile` | `HttpFileInput` | `HttpResult` |
| push | `Push` | `PushInput` | `PushResult` |
| dispatch | `Dispatch` | `DispatchInput` | `DispatchResult` |

Source: spec/authoring.md §2.12, spec/runtime.md §1.14 and §4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Literal, TypedDict, TypeVar

from pydantic import BaseModel, JsonValue

from ..nesting import shallow
from ..snapshot import json_text
from .effect_data import (
    CommandInput,
    CommandResult,
    DispatchInput,
    DispatchResult,
    HttpFileInput,
    HttpInput,
    HttpResult,
    PushInput,
    PushResult,
)
from .opening import Opening, is_open

In = TypeVar("In", bound=BaseModel)
R = TypeVar("R", bound=BaseModel)

Kind = Literal["command", "http", "push", "dispatch"]
Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
Place = Literal["harness", "sandbox-effector", "instance-effector", "orchestrator"]
"""Where an Effect runs; the first two need a Workspace around the Machine."""


class EffectDefinition(Generic[In, R]):
    """What a Machine says about an Effect: `Command`, `Http`, `HttpFile`, `Push` or `Dispatch`."""

    __slots__ = ()
    kind: ClassVar[Kind]
    takes: ClassVar[type[BaseModel]]
    gives: ClassVar[type[BaseModel]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(EffectDefinition[CommandInput, CommandResult]):
    """A program of the Sandbox.

    Args:
        argv: the program and its first arguments; no shell reads them.
        secret: the name of a secret of the config, which it finds in its environment. With one, it
            runs where no Agent does.
        timeout: how long it may take.
    """

    kind: ClassVar[Kind] = "command"
    takes: ClassVar[type[BaseModel]] = CommandInput
    gives: ClassVar[type[BaseModel]] = CommandResult

    argv: Sequence[str] | Opening
    secret: str | Opening | None = None
    timeout: timedelta | None = None

    def __post_init__(self) -> None:
        # What an author writes as a list cannot be changed afterwards.
        if isinstance(self.argv, list):
            object.__setattr__(self, "argv", tuple(self.argv))


@dataclass(frozen=True, slots=True, kw_only=True)
class Http(EffectDefinition[HttpInput, HttpResult]):
    """A request to an endpoint.

    Args:
        method: such as `POST`.
        url: an http or https url.
        headers: what each request carries; no credential stands here.
        secret: the name of a secret of the config; it is sent as a bearer token.
        timeout: how long it may take.
    """

    kind: ClassVar[Kind] = "http"
    takes: ClassVar[type[BaseModel]] = HttpInput
    gives: ClassVar[type[BaseModel]] = HttpResult

    method: Method = "POST"
    url: str | Opening
    headers: Mapping[str, str] = field(default_factory=dict)
    secret: str | Opening | None = None
    timeout: timedelta | None = None

    def __post_init__(self) -> None:
        _freeze_headers(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpFile(EffectDefinition[HttpFileInput, HttpResult]):
    """A request whose body is a file of the Worktree; its fields are those of `Http`."""

    kind: ClassVar[Kind] = "http"
    takes: ClassVar[type[BaseModel]] = HttpFileInput
    gives: ClassVar[type[BaseModel]] = HttpResult

    method: Method = "POST"
    url: str | Opening
    headers: Mapping[str, str] = field(default_factory=dict)
    secret: str | Opening | None = None
    timeout: timedelta | None = None

    def __post_init__(self) -> None:
        _freeze_headers(self)


def _freeze_headers(definition: Http | HttpFile) -> None:
    if isinstance(definition.headers, dict):
        object.__setattr__(definition, "headers", MappingProxyType(dict(definition.headers)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Push(EffectDefinition[PushInput, PushResult]):
    """A push of the Workspace's branch, with the credential that `git.credentials` has for the url.

    Args:
        repo: the Repo Slot.
        force: whether the branch may lose commits.
    """

    kind: ClassVar[Kind] = "push"
    takes: ClassVar[type[BaseModel]] = PushInput
    gives: ClassVar[type[BaseModel]] = PushResult

    repo: str
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Another Orchestrator.

    Args:
        url: its address.
        secret: the name of the secret of the config that is its Instance token.
    """

    url: str
    secret: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch(EffectDefinition[DispatchInput, DispatchResult]):
    """The start of a run of a Workflow, with a run id of its own.

    Args:
        workflow: its name.
        target: the Orchestrator that has it; this Instance's own when absent.
    """

    kind: ClassVar[Kind] = "dispatch"
    takes: ClassVar[type[BaseModel]] = DispatchInput
    gives: ClassVar[type[BaseModel]] = DispatchResult

    workflow: str
    target: Target | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Effect(Generic[In, R]):
    """The handle of an Effect, made by `Machine.effect`; it is given to `State.run`."""

    machine: object
    """The Machine that it belongs to, compared by identity."""
    slot: str
    definition: EffectDefinition[In, R]

    def encode_input(self, value: Any) -> JsonValue:
        """Return what a state gives as JSON.

        Raises:
            ValueError: it is not the input of this kind of Effect, or has no JSON form.
        """
        takes = self.definition.takes
        if not isinstance(value, takes):
            raise ValueError(
                f'the Effect "{self.slot}" is given an object of type {type(value).__name__}, and '
                f"not its {takes.__name__}(…)"
            )
        if isinstance(value, HttpInput) and None not in (value.json_body, value.text_body):
            raise ValueError(f'the Effect "{self.slot}" is given two bodies')
        plain: JsonValue = value.model_dump(mode="json")
        shallow(json_text(plain))
        return plain

    def decode_output(self, value: JsonValue) -> Any:
        """Return a result as the type of this kind of Effect.

        Raises:
            pydantic.ValidationError: it does not fit.
        """
        return self.definition.gives.model_validate(value)

    def __repr__(self) -> str:
        return f"<Effect {self.slot!r}>"


class EffectOverride(TypedDict, total=False):
    """What `customize(…, effects={"<effect>": {…}})` sets anew: fields of the Effect's own kind."""

    url: str
    argv: Sequence[str]
    secret: str
    method: Method
    headers: Mapping[str, str]
    timeout: timedelta
    repo: str
    force: bool
    workflow: str
    target: Target


def place_of(definition: EffectDefinition[Any, Any]) -> Place:
    """Return where an Effect runs.

    An Open secret counts as one: whoever binds it changes no placement.
    """
    if isinstance(definition, Command):
        return "harness" if definition.secret is None else "sandbox-effector"
    if isinstance(definition, HttpFile | Push):
        return "sandbox-effector"
    if isinstance(definition, Dispatch) and definition.target is None:
        return "orchestrator"
    return "instance-effector"


def secret_of(definition: EffectDefinition[Any, Any]) -> str | None:
    """Return the name of the secret that an Effect uses; `None` without one, or while it is Open."""
    if isinstance(definition, Command | Http | HttpFile):
        return definition.secret if isinstance(definition.secret, str) else None
    if isinstance(definition, Dispatch) and definition.target is not None:
        return definition.target.secret
    return None


def open_fields(definition: EffectDefinition[Any, Any]) -> tuple[str, ...]:
    """Return the Open parts of an Effect, in the order in which a refusal tells them."""
    return tuple(
        name
        for name in ("url", "argv", "secret")
        if hasattr(definition, name) and is_open(getattr(definition, name))
    )
