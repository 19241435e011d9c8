"""The data model of a session, and an executable block that runs over it.

A block works on a copy: what it wrote, raised and sent is the model that it leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from xml.etree.ElementTree import Element

from pydantic import Field, JsonValue

from jr2 import Context, Message

from .expressions import UNDEFINED, Scope, ScriptError, Unsupported, assign, evaluate, run

PROCESSOR: Final = "http://www.w3.org/TR/scxml/#SCXMLEventProcessor"
_UNDEFINED: Final[JsonValue] = {"$": "undefined"}


class Model(Context):
    """The data model of a session, and what its last executable block made."""

    session: str
    name: str = ""
    data: dict[str, JsonValue] = Field(default_factory=dict)
    event: JsonValue = _UNDEFINED
    active: tuple[str, ...] = ()
    visited: tuple[str, ...] = ()
    done: JsonValue = None
    ids: int = 0
    raised: tuple[JsonValue, ...] = ()
    sent: tuple[JsonValue, ...] = ()
    fresh: bool = False
    """What the start raised has not been heard yet."""


class Sent(Message):
    """What `<send>` and `<cancel>` ask of the driver."""

    what: JsonValue


def pack(value: Any) -> JsonValue:
    """Return a value with `undefined` in a form that JSON has."""
    if value is UNDEFINED:
        return _UNDEFINED
    if isinstance(value, dict):
        return {name: pack(one) for name, one in value.items()}
    return [pack(one) for one in value] if isinstance(value, list) else value


def unpack(value: Any) -> Any:
    """Return what `pack` was given."""
    if isinstance(value, dict):
        if value == _UNDEFINED:
            return UNDEFINED
        return {name: unpack(one) for name, one in value.items()}
    return [unpack(one) for one in value] if isinstance(value, list) else value


def event(name: str, kind: str, data: Any = UNDEFINED, **fields: Any) -> dict[str, Any]:
    """Return the `_event` of an event."""
    known = dict.fromkeys(("sendid", "origin", "origintype", "invokeid"), UNDEFINED)
    return {"name": name, "type": kind, "data": data, **known, **fields}


class Stop(Exception):
    """The rest of the block is left out; what it raised has been raised."""


class Block:
    """An executable block while it runs over a copy of the data model."""

    def __init__(self, model: Model, happened: Any) -> None:
        self.model = model
        self.session = model.session
        self.active = model.active
        self.visited = model.visited
        self.ids = model.ids
        self.done: Any = unpack(model.done)
        self.event = unpack(model.event) if happened is None else happened
        self.raised: list[JsonValue] = list(model.raised) if model.fresh else []
        self.sent: list[JsonValue] = []
        self.scope = scope_of(model, self.event)
        self.scope.functions["In"] = lambda id_: id_ in self.active

    def attempt(self, part: Callable[[], None]) -> None:
        """Do one block; an error of the data model ends it and is an event."""
        try:
            part()
        except ScriptError:
            self.throw(event("error.execution", "platform"))
        except Stop:
            pass

    def value(self, expression: str) -> Any:
        return evaluate(expression, self.scope)

    def write(self, location: str, value: Any) -> None:
        assign(location, value, self.scope)

    def script(self, element: Element, folder: Path) -> None:
        if element.get("src") is not None:
            raise Unsupported("a script in a file")
        run(element.text or "", self.scope)

    def throw(self, happened: dict[str, Any]) -> None:
        self.raised.append(pack(happened))

    def close(self) -> Model:
        """Return the data model after the block."""
        return self.model.set(
            data={name: pack(value) for name, value in self.scope.data.items()},
            event=pack(self.event),
            active=self.active,
            visited=self.visited,
            ids=self.ids,
            done=pack(self.done),
            raised=tuple(self.raised),
            sent=tuple(self.sent),
            fresh=False,
        )


def scope_of(model: Model, happened: Any) -> Scope:
    here = {"location": f"#_scxml_{model.session}"}
    return Scope(
        {name: unpack(value) for name, value in model.data.items()},
        {
            "_event": happened,
            "_sessionid": model.session,
            "_name": model.name,
            "_ioprocessors": {"scxml": here, PROCESSOR: here},
        },
        {"In": lambda id_: id_ in model.active},
    )
