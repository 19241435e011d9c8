"""What a run holds: its context, which outlives every process as JSON, and what starts it.

Source: spec/authoring.md §2.1 and §2.14, spec/runtime.md §1.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict

D = TypeVar("D")


class Context(BaseModel):
    """The data of a run: frozen, closed, and the same after a trip through JSON.

    The kernel reads the context back from JSON after each step that changed it, so what a guard
    sees never depends on whether the process was started again in between. A value that does not
    come back equal faults the run in the step that wrote it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def set(self, **changes: Any) -> Self:
        """Return the context with these fields changed, and validated as at construction.

        The build refuses a field that there is not where it can see it (`jr2.field_names`).

        Raises:
            AttributeError: the context has no such field; the text has the nearest one and all of them.
            pydantic.ValidationError: a value does not fit its field.
        """
        fields = type(self).__pydantic_fields__
        if not changes.keys() <= fields.keys():
            from .field_names import said

            raise AttributeError(said(type(self), min(changes.keys() - fields.keys())))
        # The validator itself: this is called in most steps.
        made: Self = type(self).__pydantic_validator__.validate_python(
            self.__dict__ | changes, by_alias=False, by_name=True
        )
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Start(Generic[D]):
    """What the `start` of a root Machine gets.

    The run id stands beside the door, not in it: it is never in the door's schema, and no caller
    sends it.
    """

    door: D
    """The input, parsed by the door; the raw JSON value when the Machine has no door."""
    run_id: str
    """The id of the run (`instanceId` on the wire)."""
