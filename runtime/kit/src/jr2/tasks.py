"""Tasks: a Machine's own async functions, their types, and how one is run.

A task's input and output cross a process and a crash as JSON, so both are read by the types that
the function declares: what the function gets and what `.done` gets are those types again.

Source: spec/authoring.md §8 (`async def` under `m.task`), design §4.2 and §4.4.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from . import kept
from .accepted import problems
from .errors import BuildRefused

In = TypeVar("In")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskError:
    """What `.failed` gets: why the task did not return."""

    reason: str
    """`<exception>: <text>` of what the task raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDone(Generic[Result]):
    """What `.done` of a pool gets."""

    item: str
    """The id of the item."""
    output: Result
    """What its Machine ended with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemError(TaskError):
    """What `.failed` of a pool gets: why the Machine of an item did not end well."""

    item: str


@dataclass(frozen=True, slots=True, eq=False)
class Task(Generic[In, Result]):
    """The handle of a task, made by `Machine.task`; it is given to `State.run`."""

    machine: object
    """The Machine that it belongs to, compared by identity."""
    slot: str
    takes_input: bool
    function: Callable[..., Awaitable[Result]]
    input_type: TypeAdapter[Any]
    output_type: TypeAdapter[Any]

    def encode_input(self, value: Any) -> JsonValue:
        """Return an input as JSON.

        Raises:
            pydantic.ValidationError: it does not fit the function's parameter.
            ValueError: it has no JSON form.
        """
        return kept.write(self.input_type, value)

    def decode_output(self, value: JsonValue) -> Any:
        """Return an output that `run` gave as the type that the function declares.

        Raises:
            pydantic.ValidationError: it does not fit.
        """
        return kept.read(self.output_type, value)

    def answered(self, value: Any) -> JsonValue:
        """Return what a test says that the function returned as JSON; `decode_output` judges it.

        Raises:
            ValueError: it has no JSON form.
        """
        try:
            return kept.write(self.output_type, value)
        except ValidationError:
            told: JsonValue = to_jsonable_python(value, by_alias=False)
            return told

    async def run(self, value: JsonValue) -> JsonValue:
        """Run the function on an input from JSON, and return its output as JSON.

        Raises:
            Exception: whatever the function raises, and what encode and decode raise.
        """
        if not self.takes_input:
            output = await self.function()
        else:
            output = await self.function(kept.read(self.input_type, value))
        return kept.write(self.output_type, output)


def make_task(
    machine: object, machine_id: str, slot: str, function: Callable[..., Any]
) -> Task[Any, Any]:
    """Return the handle of a task.

    Raises:
        BuildRefused: the function is not `async def`, takes more than one argument, or has an
            annotation that cannot be read or has no JSON form.
    """
    where = f'machine "{machine_id}": task "{slot}"'
    if not inspect.iscoroutinefunction(function):
        raise BuildRefused(f"{where} is {function!r}: a task is an `async def` function")
    needed = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if len(needed) > 1 or any(p.kind is p.KEYWORD_ONLY for p in needed):
        raise BuildRefused(
            f"{where} takes {len(needed)} arguments: a task takes its input, or nothing"
        )
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        input_type = TypeAdapter(hints.get(needed[0].name, Any) if needed else None)
        output_type = TypeAdapter(hints.get("return", Any))
    except (NameError, TypeError, ValueError, AttributeError, RuntimeError) as bad:
        raise BuildRefused(
            f"{where} has annotations that cannot be read: {type(bad).__name__}: {bad} — name "
            f"types of its module that JSON has a form for"
        ) from bad
    return Task(machine, slot, bool(needed), function, input_type, output_type)


LONGEST_REASON: Final = 4_000
"""Characters of a reason: it is stored with the run, and shown wherever the run is."""


def reason(error: BaseException) -> str:
    """Return why something of the user's failed, in short and without a traceback."""
    if isinstance(error, ValidationError):
        text = f"{error.title}: {problems(error)}"
    else:
        try:
            text = str(error)
        except Exception:
            text = "(its text cannot be read)"
    name = type(error).__name__
    whole = f"{name}: {text}" if text else name
    if len(whole) > LONGEST_REASON:
        whole = f"{whole[:LONGEST_REASON]}… ({len(whole)} characters)"
    return whole.encode(errors="replace").decode()
