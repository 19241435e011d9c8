"""What every part of the config is, and how the first thing that is wrong with one is said.

A part that is built alone does not raise: it keeps what it was given, and the `Config` that takes
it up validates it again and knows where it stands. No value of a part enters a message or a repr.

Source: spec/authoring.md §3.1 and §3.3, design §3.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    SerializationInfo,
    StrictInt,
    StringConstraints,
    ValidationError,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from . import quantity

GIT_ENTRY: Final = (
    "an entry is { match, token?, ssh_key?, push?: { ssh_key } | { token }, "
    "sign?: { ssh_key | gpg_key, name, email }, committer?: { name, email } } (ADR-0051)"
)
_LONGEST_NAME: Final = 63
_ITEM = TypeVar("_ITEM")


class ConfigInvalid(ValueError):
    """The config has a wrong shape.

    Args:
        path: where, from `Config`, such as `secrets[0].value_from`.
        problem: what is wrong there; never the value.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


def name_problem(name: str) -> str | None:
    """Return the rule that an Instance name breaks, or `None`.

    The name is the default namespace, and a label on every object, so it is a DNS label. It is
    never mapped to another one, so that two names cannot meet in one namespace.
    """
    rule = None
    if not name:
        rule = "it is empty"
    elif len(name) > _LONGEST_NAME:
        rule = f"it has {len(name)} characters, and a label has at most {_LONGEST_NAME}"
    elif (wrong := re.search(r"[^a-z0-9-]", name)) is not None:
        rule = f'it holds {quoted(wrong[0])}, and only a-z, 0-9 and "-" are legal'
    elif name.startswith("-"):
        rule = "it starts with a hyphen"
    elif name.endswith("-"):
        rule = "it ends with a hyphen"
    if rule is None:
        return None
    return f"{quoted(name)} cannot name an Instance: {rule}"


def quoted(text: str) -> str:
    """Return a text between quotes, on one line whatever it holds."""
    return json.dumps(text, ensure_ascii=False)


def legal_name(name: str | None) -> str | None:
    """Return an Instance name as it is.

    Raises:
        PydanticCustomError: it breaks a rule.
    """
    if name is not None and (problem := name_problem(name)) is not None:
        raise wrong_shape(problem)
    return name


def legal_label(name: str | None) -> str | None:
    """Return the name of a namespace as it is.

    Raises:
        PydanticCustomError: no cluster takes it as one.
    """
    if name is not None and (problem := name_problem(name)) is not None:
        raise wrong_shape(problem.replace("cannot name an Instance", "cannot name a namespace"))
    return name


def wrong_shape(text: str) -> PydanticCustomError:
    """Return the error that a validator raises; the text is told as it stands."""
    return PydanticCustomError("jr2", "{text}", {"text": text})


def _quantity(value: object) -> str | None:
    if value is None:
        return None
    try:
        text = quantity.spell(value)
        quantity.positive(text)
    except quantity.QuantityError as error:
        raise wrong_shape(str(error)) from None
    return text


def exactly_one(part: BaseModel, *fields: str) -> None:
    """Refuse a part that says none of some fields, or more than one.

    Raises:
        PydanticCustomError: it does.
    """
    given = [field for field in fields if getattr(part, field) is not None]
    if len(given) != 1:
        choice = " or ".join(fields)
        raise wrong_shape(
            f"needs exactly one of {choice}" + (", not both" if len(given) > 1 else "")
        )


def as_tuple(items: Sequence[_ITEM]) -> tuple[_ITEM, ...]:
    """Return a list of the config as what does not change."""
    return tuple(items)


def empty_is_unset(value: object) -> object:
    """Return a value that `.env` gave; an empty text is none."""
    return None if value == "" else value


Word = Annotated[str, StringConstraints(min_length=1)]
"""A string that is not empty."""
Amount = Annotated[str | None, BeforeValidator(_quantity)]
"""A Kubernetes quantity that is more than zero, kept as it was written."""
Count = Annotated[StrictInt, Field(ge=1)]
"""A whole number that is more than zero."""


class Part(BaseModel):
    """One part of the config: frozen, closed, and silent about its values."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        defer_build=True,
        revalidate_instances="always",
    )
    _positional: ClassVar[tuple[str, ...]] = ()
    """The fields that may be given by position."""

    def __init__(self, /, *given: Any, **data: Any) -> None:
        if len(given) > len(self._positional):
            takes = len(self._positional) or "no"
            raise TypeError(f"{type(self).__name__}() takes {takes} positional argument(s)")
        data = {**dict(zip(self._positional, given, strict=False)), **data}
        try:
            super().__init__(**data)
        except ValidationError as error:
            self._keep(data, error)

    # pydantic calls an `__init__` of our own also for a part given as a dict, and would lose the
    # problem there; with this mark it validates the dict itself, as for its own `__init__`.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    def _keep(self, data: dict[str, Any], error: ValidationError) -> None:
        """Keep what was given: the Config that takes this part up says where it is wrong."""
        object.__setattr__(self, "__dict__", data)
        object.__setattr__(self, "__pydantic_fields_set__", set(data))
        object.__setattr__(self, "__pydantic_extra__", None)
        object.__setattr__(self, "__pydantic_private__", None)

    def __repr__(self) -> str:
        # A part that is not valid yet may hold a secret as it was typed.
        return f"{type(self).__name__}(…)"

    __str__ = __repr__


def reveal(value: SecretStr | None, info: SerializationInfo) -> str | None:
    """Serialize a secret: as itself for the pipe between two processes of ours, else hidden."""
    if value is None:
        return None
    if isinstance(info.context, Mapping) and info.context.get("reveal") is True:
        return value.get_secret_value()
    return str(value)


# --- problems -------------------------------------------------------------------------------------
_PROBLEMS: Final[Mapping[str, str]] = {
    "missing": "is required",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must match {pattern}",
    "model_type": "must be a {class_name}(…)",
    "model_attributes_type": "must be a {class_name}(…)",
    "list_type": "must be a list",
    "sequence_str": "must be a list, not a string",
    "is_instance_of": "must be a list",
    "mapping_type": "must be a dict",
    "dict_type": "must be a dict",
    "bool_type": "must be True or False",
    "int_type": "must be a whole number",
    "greater_than_equal": "must be at least {ge}",
    "literal_error": "must be {expected}",
    "jr2": "{text}",
}


def invalid(error: ValidationError, root: type[Part]) -> ConfigInvalid:
    """Turn the first problem that pydantic found into one of ours.

    Args:
        error: what pydantic found.
        root: the class whose validation it was, from which the path is told.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    place = tuple(part for part in first["loc"] if not str(part).startswith("<"))
    problem = _words(first, place, root)
    if place[:2] == ("git", "credentials") and len(place) > 2:
        problem = f"{problem} — {GIT_ENTRY}"
    return ConfigInvalid(_path(place), problem)


def _words(first: ErrorDetails, place: tuple[int | str, ...], root: type[Part]) -> str:
    if first["type"] == "extra_forbidden":
        part = _part_at(root, place[:-1])
        if part.__name__ == "Size" and place[-1] == "requests":
            return "is no field of Size: every request equals its limit"
        return f"is no field of {part.__name__} (its fields: {', '.join(part.model_fields)})"
    template = _PROBLEMS.get(first["type"])
    if template is None:
        return first["msg"]
    return template.format(**first.get("ctx", {}))


def _path(place: Sequence[int | str]) -> str:
    """Return a path as a person writes it in Python: `secrets[0].value_from`."""
    path = ""
    for part in place:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part.isidentifier():
            path += f".{part}" if path else part
        else:
            path += f'["{part}"]'
    return path


def _part_at(root: type[Part], place: Sequence[int | str]) -> type[Part]:
    """Return the class of the part at a path; keys of a dict and indexes change nothing."""
    part = root
    for step in place:
        field = part.model_fields.get(step) if isinstance(step, str) else None
        if field is not None:
            part = _part_in(field.annotation) or part
    return part


def _part_in(annotation: object) -> type[Part] | None:
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return annotation
    found = (_part_in(argument) for argument in get_args(annotation))
    return next((part for part in found if part is not None), None)
