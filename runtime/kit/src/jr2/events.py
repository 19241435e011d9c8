"""What a Machine hears and says: event classes and messages, each a frozen model of pure data.

An event class is the tool that an Agent picks, the body that a Gate takes, and the key of a
transition, so its name is a fact of the wire: `^[a-zA-Z0-9_-]+$`, with no dot, for dotted names are
the kernel's own. The class is pure data: one class may serve many Machines.

Source: spec/authoring.md §2.3 and §8.
"""

from __future__ import annotations

import inspect
import re
from typing import Any, ClassVar, Final, Literal, get_args

from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, JsonValue
from pydantic_core import from_json

from .errors import BuildRefused
from .nesting import shallow

Audience = Literal["agent", "external", "any", "jr2"]
"""Who may send an event: only an Agent's pick, only a Gate, both, or only jr2 and the Machine itself."""

Semantics = Literal["ack", "deferred", "poll"]
"""How a sender hears what came of an event; only `ack` is delivered today, the rest is reserved."""

NAME: Final = re.compile(r"[a-zA-Z0-9_-]+")
"""What an event, a state, a task and a Machine may be called (a full match)."""

_MECHANISM: Final = re.compile(r"[a-z0-9]+\.[a-z]+")
"""What an event of jr2 itself is called: no event class of an author can have such a name."""

_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """Return a class name as the default name on the wire: `RequestChanges` → `request_changes`."""
    return _WORD.sub("_", name).lower()


def _aliases(alias: str | AliasPath | AliasChoices | None) -> list[str | int]:
    """Return the names on the wire that an alias of a field gives it."""
    if isinstance(alias, AliasChoices):
        return [name for choice in alias.choices for name in _aliases(choice)]
    if isinstance(alias, AliasPath):
        return alias.path[:1]
    return [] if alias is None else [alias]


class _Named(BaseModel):
    """The base of what has a name on the wire: frozen, closed, described by its docstring."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    __jr2_name__: ClassVar[str] = ""
    __jr2_kind__: ClassVar[str] = "name"
    __jr2_rule__: ClassVar[re.Pattern[str]] = NAME

    def __init_subclass__(cls, *, name: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if name is None and "[" in cls.__name__:
            return  # `Found[int]` is the class `Found`, which has its name
        chosen: object = snake_case(cls.__name__) if name is None else name
        if not isinstance(chosen, str) or not cls.__jr2_rule__.fullmatch(chosen):
            raise BuildRefused(
                f"{cls.__jr2_kind__} class {cls.__qualname__} has the name {chosen!r}: a name has "
                f"letters, digits, _ and - only"
            )
        cls.__jr2_name__ = chosen

    @classmethod
    def __pydantic_init_subclass__(cls, *, name: str | None = None, **options: Any) -> None:
        """Refuse a field that the wire has no place for."""
        super().__pydantic_init_subclass__(**options)
        for field, said in cls.model_fields.items():
            if "type" in (field, *_aliases(said.alias), *_aliases(said.validation_alias)):
                what = "a field `type`" if field == "type" else f"the alias `type` of `{field}`"
                raise BuildRefused(
                    f"{cls.__jr2_kind__} class {cls.__qualname__} has {what}: on the wire that "
                    f"is the name itself, so call the field something else"
                )


class Event(_Named):
    """An event that both an Agent may pick and a Gate may take.

    A subclass declares the payload as fields; its docstring is the description that people and
    models read. The name is the class name in snake_case, or the class argument `name`:

        class Finish(AgentEvent, name="finish"):
            '''End the turn: the work is committed on the branch.'''

            summary: str

    Raises:
        BuildRefused: at the class statement, for a bad name or a field called `type`.
    """

    __jr2_audience__: ClassVar[Audience] = "any"
    __jr2_kind__: ClassVar[str] = "event"
    __jr2_semantics__: ClassVar[Semantics] = "ack"

    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        semantics: Semantics = "ack",
        output: type[BaseModel] | None = None,
        **options: Any,
    ) -> None:
        super().__init_subclass__(name=name, **options)
        if name is None and "[" in cls.__name__:
            return
        where = f"event class {cls.__qualname__}"
        if semantics not in get_args(Semantics):
            raise BuildRefused(
                f"{where} has semantics={semantics!r}, which is not one of "
                f"{', '.join(get_args(Semantics))}"
            )
        if semantics == "deferred" and output is None:
            raise BuildRefused(f'{where} has semantics="deferred" and no output=')
        cls.__jr2_semantics__ = semantics

    @classmethod
    def __pydantic_init_subclass__(
        cls,
        *,
        name: str | None = None,
        semantics: Semantics = "ack",
        output: type[BaseModel] | None = None,
        **options: Any,
    ) -> None:
        """Take what `__init_subclass__` takes."""
        super().__pydantic_init_subclass__(name=name, **options)


class AgentEvent(Event):
    """An event that only an Agent's pick can send: no Gate accepts it."""

    __jr2_audience__: ClassVar[Audience] = "agent"


class ExternalEvent(Event):
    """An event that only a Gate takes: no Agent is offered it."""

    __jr2_audience__: ClassVar[Audience] = "external"


class InternalEvent(Event):
    """An event that only the Machine itself sends, by `raise_`: no Gate accepts it, no Menu has it."""

    __jr2_audience__: ClassVar[Audience] = "jr2"


class _MechanismEvent(Event, name="jr2.event"):
    """An event that jr2 sends into a Machine; no Gate accepts it and no Agent is offered it."""

    __jr2_audience__: ClassVar[Audience] = "jr2"
    __jr2_rule__: ClassVar[re.Pattern[str]] = _MECHANISM


class AgentFault(_MechanismEvent, name="agent.fault"):
    """The end of a Turn that jr2 could not save; it is heard by the state that asked for it."""

    instance_id: str
    """The conversation that the Turn was part of."""
    reason: str


class WorkspaceLost(_MechanismEvent, name="workspace.lost"):
    """The pod of the Workspace is gone, and with it what was not pushed."""

    reason: str = ""


class Message(_Named):
    """What a transition tells watchers: its name and payload go to the feeds, and drive nothing."""

    __jr2_kind__: ClassVar[str] = "message"


def event_name(event: type[Event]) -> str:
    """Return the name of an event class on the wire."""
    return event.__jr2_name__


def audience(event: type[Event]) -> Audience:
    """Return who may send an event."""
    return event.__jr2_audience__


def semantics(event: type[Event]) -> Semantics:
    """Return how a sender hears what came of an event."""
    return event.__jr2_semantics__


def description(model: type[BaseModel]) -> str | None:
    """Return the docstring of the class itself, cleaned; never that of a base class."""
    origin = model.__pydantic_generic_metadata__["origin"]
    text = (model if origin is None else origin).__dict__.get("__doc__")
    return inspect.cleandoc(text) or None if isinstance(text, str) else None


def message_wire(message: Message) -> tuple[str, JsonValue]:
    """Return the type and the JSON payload of a message.

    Raises:
        ValueError: it has no JSON form.
    """
    # Through the text, for what UTF-8 cannot write, or is nested too deep, must fail here.
    text = message.__pydantic_serializer__.to_json(message).decode()
    payload: JsonValue = from_json(shallow(text))
    return type(message).__jr2_name__, payload
