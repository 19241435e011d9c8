"""Refuses types that cannot be read: one of their annotations names what is not there.

A name that is imported under `TYPE_CHECKING` alone pleases a type checker, and there is none when
the Machine runs. Pydantic says so at the first use, which is in a run; the build asks before.

Source: spec/authoring.md §2.2 (all fail at import, so a check catches them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticUserError

from .drafts import StateDraft
from .events import Event, event_name
from .tasks import Task


def problems(
    root: StateDraft,
    *,
    context: type[BaseModel],
    output: TypeAdapter[Any] | None,
    tasks: Mapping[str, Task[Any, Any]],
) -> Iterator[str]:
    """Yield what is wrong with the types that a Machine keeps and hands on."""
    read: dict[str, type[BaseModel] | TypeAdapter[Any]] = {
        f"the context {context.__name__}": context
    }
    if output is not None:
        read["the output"] = output
    for slot, task in tasks.items():
        read[f'the input of the task "{slot}"'] = task.input_type
        read[f'the result of the task "{slot}"'] = task.output_type
    for event in _own_events(root):
        read[f'the event "{event_name(event)}"'] = event
    for what, model in read.items():
        why = _undefined(model)
        if why is not None:
            yield root.said(
                f"cannot read {what}: {why} — import what its annotations name where the module "
                "runs, and not for the type checker alone"
            )


def _own_events(root: StateDraft) -> list[type[Event]]:
    """Return the events that the Machine hears from itself; of the others a schema is made."""
    found = dict.fromkeys(
        transition.event_class for draft in root.down() for transition in draft.transitions
    )
    return [event for event in found if event is not None and event.__jr2_audience__ == "jr2"]


def _undefined(model: type[BaseModel] | TypeAdapter[Any]) -> str | None:
    try:
        if isinstance(model, TypeAdapter):
            model.rebuild()
        else:
            model.model_rebuild()
    except (PydanticUserError, NameError, TypeError, ValueError, AttributeError) as bad:
        return str(bad).splitlines()[0]
    return None
