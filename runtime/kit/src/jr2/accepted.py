"""Reads what comes from outside by a model, and says in one line what would have been accepted.

Input and events come as JSON, so they are read in pydantic's JSON mode, where a date is a string
also for a strict model.

Source: spec/authoring.md §2.8, spec/runtime.md §1.4 (400 naming the accepted shape).
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Final, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from .nesting import TooDeep, shallow

M = TypeVar("M", bound=BaseModel)
_encode: Final = json.JSONEncoder().encode


class Unfit(Exception):
    """A value does not fit a model; `str()` says where and why, and never quotes the value."""


def parse(model: type[M], value: JsonValue, *, by_alias: bool = True) -> M:
    """Return `value` as an instance of `model`: defaults applied, unknown keys as it says.

    Args:
        model: the model.
        value: JSON.
        by_alias: a field is known by its alias too, as its schema says; not in what jr2 wrote.

    Raises:
        Unfit: the value does not fit.
    """
    try:
        # The validator itself, and no detour for what most events carry: each step reads one.
        text = "{}" if value == {} else shallow(_encode(value))
        read: M = model.__pydantic_validator__.validate_json(text, by_alias=by_alias, by_name=True)
        return read
    except ValidationError as bad:
        raise Unfit(problems(bad)) from None
    except TooDeep as bad:
        raise Unfit(str(bad)) from None
    except Exception as bad:
        # A validator of the author's; what it says may hold the value.
        raise Unfit(f"{model.__name__} raised {type(bad).__name__} while it was read") from bad


def problems(error: ValidationError) -> str:
    """Return each problem as `field.path: text`, on one line.

    The value itself is left out: it may be a secret, and the text goes to logs.
    """
    lines = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(str(part) for part in problem["loc"])
        lines.append(f"{place}: {problem['msg']}" if place else problem["msg"])
    return "; ".join(lines)


@lru_cache(maxsize=1024)
def schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of a model; callers do not change it."""
    return model.model_json_schema()


@lru_cache(maxsize=1024)
def shape_line(model: type[BaseModel]) -> str:
    """Return the accepted shape in one line: `{message?: string, count: integer}`."""
    whole = schema(model)
    return _shape(whole, whole.get("$defs", {}), depth=0)


def _shape(part: dict[str, Any], named: dict[str, Any], *, depth: int) -> str:
    if "$ref" in part:
        part = named.get(str(part["$ref"]).rsplit("/", 1)[-1], {})
    if "enum" in part or "const" in part:
        values = part.get("enum", [part.get("const")])
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    if "anyOf" in part:
        return " | ".join(_shape(one, named, depth=depth) for one in part["anyOf"])
    kind = part.get("type", "any")
    if kind == "array":
        return f"[{_shape(part.get('items', {}), named, depth=depth + 1)}]"
    if kind != "object" or depth > 2:
        return str(kind)
    required = part.get("required", ())
    fields = (
        f"{name}{'' if name in required else '?'}: {_shape(field, named, depth=depth + 1)}"
        for name, field in part.get("properties", {}).items()
    )
    return "{" + ", ".join(fields) + "}"
