"""JSON that jr2 writes for itself and reads back: by the names of fields, whatever their aliases.

An alias is how somebody else spells a field. What a run keeps, or hands to a task, is written and
read by jr2 alone, and an alias may differ between the two directions, so it takes no part. Nor does
a computed field: it follows from the others.

Source: spec/authoring.md §2.14 (data survives a trip through JSON).
"""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue, TypeAdapter

from . import accepted
from .nesting import shallow
from .snapshot import json_text

M = TypeVar("M", bound=BaseModel)


def write(adapter: TypeAdapter[Any], value: Any) -> JsonValue:
    """Return a value as JSON, after it was read by its type.

    Raises:
        pydantic.ValidationError: it does not fit.
        ValueError: it has no JSON form.
    """
    fitting = adapter.validate_python(value, by_alias=True, by_name=True)
    plain: JsonValue = adapter.dump_python(
        fitting, mode="json", by_alias=False, exclude_computed_fields=True
    )
    shallow(json_text(plain))
    return plain


def read(adapter: TypeAdapter[Any], plain: JsonValue) -> Any:
    """Return what `write` wrote as its type.

    Raises:
        pydantic.ValidationError: it does not fit.
    """
    return adapter.validate_json(json_text(plain), by_alias=False, by_name=True)


def write_model(value: BaseModel) -> JsonValue:
    """Return a model as JSON, as it is.

    Raises:
        ValueError: it has no JSON form.
    """
    plain: JsonValue = value.model_dump(
        mode="json", by_alias=False, exclude_computed_fields=True, warnings=False
    )
    return plain


def read_model(model: type[M], plain: JsonValue) -> M:
    """Return what `write_model` wrote.

    Raises:
        accepted.Unfit: it does not fit.
    """
    return accepted.parse(model, plain, by_alias=False)


def sent(model: BaseModel) -> JsonValue:
    """Return a model as somebody would send it: by its aliases, if those are read again.

    Raises:
        ValueError: it has no JSON form.
    """
    told: JsonValue = model.model_dump(mode="json", by_alias=True)
    try:
        if accepted.parse(type(model), told) == model:
            return told
    except accepted.Unfit:
        pass
    return write_model(model)
