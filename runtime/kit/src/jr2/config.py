"""What an Instance declares about reach and credentials: `config = Config(…)` in `jr2_config.py`.

The config is read in two worlds: on the host with the values of `.env`, and in the cluster without
them. So a load checks the shape alone, in both worlds alike, and names the first field that is
wrong by its path from `Config`, such as `git.credentials[0].ssh_key`. That a value is present, and
that it fits what uses it, is for the Converge to say. No Machine, Agent, Repo or image is named
here: Machines carry those.

A part that is built alone, such as `GitCredential(…)`, does not raise: it keeps what it was given,
and the `Config` that takes it up says where in the config it stands. No value of a field that can
hold a secret ever enters a message or a repr.

Source: spec/authoring.md §3.1–3.8, design §3 (word table) and §3.1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    SecretStr,
    SerializationInfo,
    StrictBool,
    StrictInt,
    StringConstraints,
    Tag,
    ValidationError,
    field_serializer,
    model_validator,
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
        rule = f'it holds "{wrong[0]}", and only a-z, 0-9 and "-" are legal'
    elif name.startswith("-"):
        rule = "it starts with a hyphen"
    elif name.endswith("-"):
        rule = "it ends with a hyphen"
    if rule is None:
        return None
    return f'"{name}" cannot name an Instance: {rule}'


def _named(name: str | None) -> str | None:
    if name is not None and (problem := name_problem(name)) is not None:
        raise _problem(problem)
    return name


def _problem(text: str) -> PydanticCustomError:
    return PydanticCustomError("jr2", "{text}", {"text": text})


def _quantity(value: object) -> str | None:
    if value is None:
        return None
    try:
        text = quantity.spell(value)
        quantity.positive(text)
    except quantity.QuantityError as error:
        raise _problem(str(error)) from None
    return text


def _exactly_one(part: BaseModel, *fields: str) -> None:
    given = [field for field in fields if getattr(part, field) is not None]
    if len(given) != 1:
        choice = " or ".join(fields)
        raise _problem(f"needs exactly one of {choice}" + (", not both" if len(given) > 1 else ""))


def _tuple(items: Sequence[_ITEM]) -> tuple[_ITEM, ...]:
    return tuple(items)


def _empty_is_unset(value: object) -> object:
    return None if value == "" else value


_Word = Annotated[str, StringConstraints(min_length=1)]
"""A string that is not empty."""
_FromEnvironment = Annotated[str | None, BeforeValidator(_empty_is_unset)]
"""A string that `.env` may set; an empty one counts as unset."""
_Amount = Annotated[str | None, BeforeValidator(_quantity)]
_Count = Annotated[StrictInt, Field(ge=1)]


class _Part(BaseModel):
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


def _reveal(value: SecretStr | None, info: SerializationInfo) -> str | None:
    """Serialize a secret: as itself for the pipe between two processes of ours, else hidden."""
    if value is None:
        return None
    if isinstance(info.context, Mapping) and info.context.get("reveal") is True:
        return value.get_secret_value()
    return str(value)


# --- git ------------------------------------------------------------------------------------------
class GitPush(_Part):
    """What a push uses in place of the clone's credential; exactly one of the two.

    Args:
        ssh_key: the name of a Secret with the keys `identity` and `known_hosts`.
        token: the name of an environment variable.
    """

    ssh_key: _Word | None = None
    token: _Word | None = None

    @model_validator(mode="after")
    def _one(self) -> GitPush:
        _exactly_one(self, "ssh_key", "token")
        return self


class GitSign(_Part):
    """How commits are signed; exactly one key.

    Args:
        ssh_key: the name of a Secret with an ssh key.
        gpg_key: the name of a Secret with a GPG key.
        name: who signs.
        email: the signer's address.
    """

    ssh_key: _Word | None = None
    gpg_key: _Word | None = None
    name: _Word
    email: _Word

    @model_validator(mode="after")
    def _one(self) -> GitSign:
        _exactly_one(self, "ssh_key", "gpg_key")
        return self


class GitCommitter(_Part):
    """Who commits.

    Args:
        name: the committer's name.
        email: the committer's address.
    """

    name: _Word
    email: _Word


class GitCredential(_Part):
    """The credential for the repositories under a prefix; the list is also the fence.

    Args:
        match: a prefix of `host/path`, or `*`; the longest one wins, the first of two equal ones.
        token: the NAME of an environment variable, for http and https urls.
        ssh_key: the NAME of a Secret, for ssh urls.
        push: another credential for pushes.
        sign: how commits are signed.
        committer: who commits.
    """

    match: _Word
    token: _Word | None = None
    ssh_key: _Word | None = None
    push: GitPush | None = None
    sign: GitSign | None = None
    committer: GitCommitter | None = None


class Git(_Part):
    """What the Instance says about git.

    Args:
        credentials: one entry for each prefix.
    """

    credentials: Annotated[Sequence[GitCredential], AfterValidator(_tuple)] = ()


# --- secrets --------------------------------------------------------------------------------------
class SecretKeyRef(_Part):
    """One key of a Secret in the Instance's namespace.

    Args:
        name: the Secret.
        key: its key.
    """

    name: _Word
    key: _Word


class ConfigMapKeyRef(_Part):
    """One key of a ConfigMap in the Instance's namespace.

    Args:
        name: the ConfigMap.
        key: its key.
    """

    name: _Word
    key: _Word


class FieldRef(_Part):
    """A field of the pod itself.

    Args:
        field_path: such as `metadata.namespace`.
    """

    field_path: _Word


class Secret(_Part):
    """A credential that a pod or an Effect uses, and that no Agent can read.

    Args:
        name: the environment variable that it stands for, capitals, digits and `_`.
        value: its value, from `.env`; a variable that is not set reads as `None`.
        value_from: the Secret that holds it, in place of `value`.
        hosts: where it may be sent: a host, `host:port` or an https URL.
        headers: the headers that may carry it.
        paths: the path prefixes that it may be sent to.
    """

    name: Annotated[str, StringConstraints(pattern=r"^[A-Z_][A-Z0-9_]*$")]
    value: SecretStr | None = None
    value_from: SecretKeyRef | None = None
    hosts: Annotated[Sequence[str] | None, AfterValidator(lambda v: v and _tuple(v))] = None
    headers: Annotated[Sequence[str] | None, AfterValidator(lambda v: v and _tuple(v))] = None
    paths: Annotated[Sequence[str] | None, AfterValidator(lambda v: v and _tuple(v))] = None

    _positional = ("name",)

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            *,
            value: str | SecretStr | None = None,
            value_from: SecretKeyRef | None = None,
            hosts: Sequence[str] | None = None,
            headers: Sequence[str] | None = None,
            paths: Sequence[str] | None = None,
        ) -> None: ...

    _serialize = field_serializer("value")(_reveal)


# --- the Harness ----------------------------------------------------------------------------------
class ModelLimits(_Part):
    """What a model can take.

    Args:
        context_window: tokens.
        max_tokens: tokens of one answer.
    """

    context_window: _Count | None = None
    max_tokens: _Count | None = None


class Provider(_Part):
    """A model provider of your own.

    Args:
        id: what stands before the `/` of a model.
        api: the protocol that it speaks, such as `openai-completions`.
        base_url: its address, as a pod reaches it.
        api_key: its key.
        context_window: tokens, for each model that states none.
        max_tokens: tokens of one answer, for each model that states none.
        models: limits of single models; a key is the id after the `/`.
    """

    id: _Word
    api: _Word
    base_url: str
    api_key: SecretStr | None = None
    context_window: _Count | None = None
    max_tokens: _Count | None = None
    models: Mapping[str, ModelLimits] = Field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            id: str,
            api: str,
            base_url: str,
            api_key: str | SecretStr | None = None,
            context_window: int | None = None,
            max_tokens: int | None = None,
            models: Mapping[str, ModelLimits] = {},
        ) -> None: ...

    _serialize = field_serializer("api_key")(_reveal)


class Gateway(_Part):
    """Where a provider of the catalog is called in place of its own address.

    Args:
        base_url: an https URL.
    """

    base_url: str


_SOURCES: Final[Mapping[str, type[_Part]]] = {
    "secret_key_ref": SecretKeyRef,
    "config_map_key_ref": ConfigMapKeyRef,
    "field_ref": FieldRef,
}
"""How a source is written where it leaves the process, as a pod spec writes it."""


def _source_tag(value: object) -> str | None:
    for key, source in _SOURCES.items():
        if isinstance(value, source) or (isinstance(value, Mapping) and set(value) == {key}):
            return f"<{key}>"
    return None


def _inner(value: object) -> object:
    return next(iter(value.values())) if isinstance(value, Mapping) else value


_Source = Annotated[
    Annotated[SecretKeyRef, BeforeValidator(_inner), Tag("<secret_key_ref>")]
    | Annotated[ConfigMapKeyRef, BeforeValidator(_inner), Tag("<config_map_key_ref>")]
    | Annotated[FieldRef, BeforeValidator(_inner), Tag("<field_ref>")],
    Discriminator(
        _source_tag,
        custom_error_type="source",
        custom_error_message="must be a SecretKeyRef, a ConfigMapKeyRef or a FieldRef",
    ),
]


class EnvVar(_Part):
    """A variable of every Harness container.

    Args:
        name: the variable.
        value: its value; it lands in a Secret.
        value_from: where it comes from, in place of `value`.
    """

    name: _Word
    value: SecretStr | None = None
    value_from: _Source | None = None

    _positional = ("name",)

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            *,
            value: str | SecretStr | None = None,
            value_from: SecretKeyRef | ConfigMapKeyRef | FieldRef | None = None,
        ) -> None: ...

    _serialize = field_serializer("value")(_reveal)

    @field_serializer("value_from")
    def _serialize_source(
        self, source: SecretKeyRef | ConfigMapKeyRef | FieldRef | None
    ) -> dict[str, Any] | None:
        if source is None:
            return None
        key = next(key for key, kind in _SOURCES.items() if type(source) is kind)
        return {key: source.model_dump()}


class EnvFrom(_Part):
    """All keys of a Secret or a ConfigMap, for every Harness container; exactly one of the two.

    Args:
        secret: the name of a Secret.
        config_map: the name of a ConfigMap.
    """

    secret: _Word | None = None
    config_map: _Word | None = None

    @model_validator(mode="after")
    def _one(self) -> EnvFrom:
        _exactly_one(self, "secret", "config_map")
        return self


class Harness(_Part):
    """What every Harness container gets.

    Args:
        provider: a model provider of your own.
        catalog: provider ids of the catalog, moved to a gateway.
        env: variables.
        env_from: variables from Secrets and ConfigMaps that you keep yourself.
        ca_bundle: a PEM file, relative to the Instance folder; read on the host.
    """

    provider: Provider | None = None
    catalog: Mapping[str, Gateway] = Field(default_factory=dict)
    env: Annotated[Sequence[EnvVar], AfterValidator(_tuple)] = ()
    env_from: Annotated[Sequence[EnvFrom], AfterValidator(_tuple)] = ()
    ca_bundle: _Word | None = None


# --- Sandboxes ------------------------------------------------------------------------------------
class Size(_Part):
    """The memory and cpu of a whole Sandbox; every request equals its limit.

    Args:
        memory: a Kubernetes quantity, such as `2Gi`; kept as it was written.
        cpu: a Kubernetes quantity, such as `1` or `1500m`; kept as it was written.
    """

    memory: _Amount = None
    cpu: _Amount = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            memory: str | int | float | None = None,
            cpu: str | int | float | None = None,
        ) -> None: ...


class Toleration(_Part):
    """A taint that a Sandbox may be placed beside, as a pod spec says it.

    Args:
        key: the taint's key; absent for every key.
        operator: `Exists` or `Equal`.
        value: the taint's value.
        effect: the taint's effect; absent for every effect.
        toleration_seconds: how long a `NoExecute` taint is borne.
    """

    key: str | None = None
    operator: Literal["Exists", "Equal"] | None = None
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: StrictInt | None = None


class Sandbox(_Part):
    """Where Sandboxes are placed, and their Size when a Workspace states none.

    Args:
        node_selector: labels that a node must have.
        tolerations: taints that a Sandbox may be placed beside.
        resources: the default Size, field by field.
    """

    node_selector: Mapping[str, str] = Field(default_factory=dict)
    tolerations: Annotated[Sequence[Toleration], AfterValidator(_tuple)] = ()
    resources: Size | None = None


class PriorityClasses(_Part):
    """PriorityClasses that exist, in place of those that jr2 makes.

    Args:
        control: for the Orchestrator and what serves it.
        sandbox: for Sandboxes.
    """

    control: _Word | None = None
    sandbox: _Word | None = None


class Operator(_Part):
    """What the Instance says about the operator of the cluster.

    Args:
        manage: `False` leaves the operator to somebody else.
    """

    manage: StrictBool = True


class Config(_Part):
    """The config of an Instance.

    Args:
        name: the Instance's name; the folder's name when it is absent. A DNS label.
        registry: where the images that `jr2 up` builds are pushed; read it from the environment.
        kit_registry: a mirror of the Kit images.
        platforms: docker platform strings; the nodes decide when it is absent.
        git: credentials for repositories.
        secrets: credentials that no Agent can read.
        harness: what every Harness container gets.
        sandbox: where Sandboxes are placed.
        priority_classes: PriorityClasses that exist.
        operator: whether jr2 manages the operator.

    Raises:
        ConfigInvalid: the shape is wrong; it names the first wrong field.
    """

    name: Annotated[str | None, AfterValidator(_named)] = None
    registry: _FromEnvironment = None
    kit_registry: _FromEnvironment = None
    platforms: Annotated[Sequence[_Word] | None, AfterValidator(lambda v: v and _tuple(v))] = None
    git: Git = Git()
    secrets: Annotated[Sequence[Secret], AfterValidator(_tuple)] = ()
    harness: Harness = Harness()
    sandbox: Sandbox = Sandbox()
    priority_classes: PriorityClasses = PriorityClasses()
    operator: Operator = Operator()

    def _keep(self, data: dict[str, Any], error: ValidationError) -> None:
        raise _invalid(error) from None

    def revealed(self) -> dict[str, Any]:
        """Return the config as JSON with its secret values, for the pipe to a process of ours.

        `Config.model_validate` of it gives an equal config.
        """
        return self.model_dump(mode="json", context={"reveal": True})


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


def _invalid(error: ValidationError) -> ConfigInvalid:
    """Turn the first problem that pydantic found into one of ours."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = tuple(part for part in first["loc"] if not str(part).startswith("<"))
    problem = _words(first, place)
    if place[:2] == ("git", "credentials") and len(place) > 2:
        problem = f"{problem} — {GIT_ENTRY}"
    return ConfigInvalid(_path(place), problem)


def _words(first: ErrorDetails, place: tuple[int | str, ...]) -> str:
    if first["type"] == "extra_forbidden":
        part = _part_at(place[:-1])
        if part is Size and place[-1] == "requests":
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


def _part_at(place: Sequence[int | str]) -> type[_Part]:
    """Return the class of the part at a path; keys of a dict and indexes change nothing."""
    part: type[_Part] = Config
    for step in place:
        field = part.model_fields.get(step) if isinstance(step, str) else None
        if field is not None:
            part = _part_in(field.annotation) or part
    return part


def _part_in(annotation: object) -> type[_Part] | None:
    if isinstance(annotation, type) and issubclass(annotation, _Part):
        return annotation
    found = (_part_in(argument) for argument in get_args(annotation))
    return next((part for part in found if part is not None), None)
