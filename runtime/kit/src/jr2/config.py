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

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    SecretStr,
    StrictBool,
    StrictInt,
    StringConstraints,
    Tag,
    ValidationError,
    field_serializer,
    model_validator,
)

from .config_names import (
    DataKey,
    FieldPath,
    Labels,
    ObjectName,
    RegistryHome,
    VariableName,
    label_key,
    label_value,
)
from .config_network import AllowFrom, Network
from .config_part import (
    Amount,
    ConfigInvalid,
    Count,
    Part,
    Word,
    as_tuple,
    exactly_one,
    invalid,
    legal_name,
    name_problem,
    reveal,
    wrong_shape,
)

__all__ = [
    "AllowFrom",
    "Config",
    "ConfigInvalid",
    "ConfigMapKeyRef",
    "EnvFrom",
    "EnvVar",
    "FieldRef",
    "Gateway",
    "Git",
    "GitCommitter",
    "GitCredential",
    "GitPush",
    "GitSign",
    "Harness",
    "ModelLimits",
    "Network",
    "Operator",
    "PriorityClasses",
    "Provider",
    "Sandbox",
    "Secret",
    "SecretKeyRef",
    "Size",
    "Toleration",
    "name_problem",
]


# --- git ------------------------------------------------------------------------------------------
class GitPush(Part):
    """What a push uses in place of the clone's credential; exactly one of the two.

    Args:
        ssh_key: the name of a Secret with the keys `identity` and `known_hosts`.
        token: the name of an environment variable.
    """

    ssh_key: Word | None = None
    token: VariableName | None = None

    @model_validator(mode="after")
    def _one(self) -> GitPush:
        exactly_one(self, "ssh_key", "token")
        return self


class GitSign(Part):
    """How commits are signed; exactly one key.

    Args:
        ssh_key: the name of a Secret with an ssh key.
        gpg_key: the name of a Secret with a GPG key.
        name: who signs.
        email: the signer's address.
    """

    ssh_key: Word | None = None
    gpg_key: Word | None = None
    name: Word
    email: Word

    @model_validator(mode="after")
    def _one(self) -> GitSign:
        exactly_one(self, "ssh_key", "gpg_key")
        return self


class GitCommitter(Part):
    """Who commits.

    Args:
        name: the committer's name.
        email: the committer's address.
    """

    name: Word
    email: Word


class GitCredential(Part):
    """The credential for the repositories under a prefix; the list is also the fence.

    Args:
        match: a prefix of `host/path`, or `*`; the longest one wins, the first of two equal ones.
        token: the NAME of an environment variable, for http and https urls.
        ssh_key: the NAME of a Secret, for ssh urls.
        push: another credential for pushes.
        sign: how commits are signed.
        committer: who commits.
    """

    match: Word
    token: VariableName | None = None
    ssh_key: Word | None = None
    push: GitPush | None = None
    sign: GitSign | None = None
    committer: GitCommitter | None = None


class Git(Part):
    """What the Instance says about git.

    Args:
        credentials: one entry for each prefix.
    """

    credentials: Annotated[Sequence[GitCredential], AfterValidator(as_tuple)] = ()


# --- secrets --------------------------------------------------------------------------------------
class SecretKeyRef(Part):
    """One key of a Secret in the Instance's namespace.

    Args:
        name: the Secret.
        key: its key.
    """

    name: ObjectName
    key: DataKey


class ConfigMapKeyRef(Part):
    """One key of a ConfigMap in the Instance's namespace.

    Args:
        name: the ConfigMap.
        key: its key.
    """

    name: ObjectName
    key: DataKey


class FieldRef(Part):
    """A field of the pod itself.

    Args:
        field_path: such as `metadata.namespace`.
    """

    field_path: FieldPath


class Secret(Part):
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
    hosts: Annotated[Sequence[str] | None, AfterValidator(lambda v: v and as_tuple(v))] = None
    headers: Annotated[Sequence[str] | None, AfterValidator(lambda v: v and as_tuple(v))] = None
    paths: Annotated[Sequence[str] | None, AfterValidator(lambda v: v and as_tuple(v))] = None

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

    _serialize = field_serializer("value")(reveal)


# --- the Harness ----------------------------------------------------------------------------------
class ModelLimits(Part):
    """What a model can take.

    Args:
        context_window: tokens.
        max_tokens: tokens of one answer.
    """

    context_window: Count | None = None
    max_tokens: Count | None = None


class Provider(Part):
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

    id: Word
    api: Word
    base_url: str
    api_key: SecretStr | None = None
    context_window: Count | None = None
    max_tokens: Count | None = None
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

    _serialize = field_serializer("api_key")(reveal)


class Gateway(Part):
    """Where a provider of the catalog is called in place of its own address.

    Args:
        base_url: an https URL.
    """

    base_url: str


_SOURCES: Final[Mapping[str, type[Part]]] = {
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


class EnvVar(Part):
    """A variable of every Harness container.

    Args:
        name: the variable.
        value: its value; it lands in a Secret.
        value_from: where it comes from, in place of `value`.
    """

    name: Word
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

    _serialize = field_serializer("value")(reveal)

    @field_serializer("value_from")
    def _serialize_source(
        self, source: SecretKeyRef | ConfigMapKeyRef | FieldRef | None
    ) -> dict[str, Any] | None:
        if source is None:
            return None
        key = next(key for key, kind in _SOURCES.items() if type(source) is kind)
        return {key: source.model_dump()}


class EnvFrom(Part):
    """All keys of a Secret or a ConfigMap, for every Harness container; exactly one of the two.

    Args:
        secret: the name of a Secret.
        config_map: the name of a ConfigMap.
    """

    secret: ObjectName | None = None
    config_map: ObjectName | None = None

    @model_validator(mode="after")
    def _one(self) -> EnvFrom:
        exactly_one(self, "secret", "config_map")
        return self


class Harness(Part):
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
    env: Annotated[Sequence[EnvVar], AfterValidator(as_tuple)] = ()
    env_from: Annotated[Sequence[EnvFrom], AfterValidator(as_tuple)] = ()
    ca_bundle: Word | None = None


# --- Sandboxes ------------------------------------------------------------------------------------
class Size(Part):
    """The memory and cpu of a whole Sandbox; every request equals its limit.

    Args:
        memory: a Kubernetes quantity, such as `2Gi`; kept as it was written.
        cpu: a Kubernetes quantity, such as `1` or `1500m`; kept as it was written.
    """

    memory: Amount = None
    cpu: Amount = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            memory: str | int | float | None = None,
            cpu: str | int | float | None = None,
        ) -> None: ...


class Toleration(Part):
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

    @model_validator(mode="after")
    def _as_kubernetes_takes_it(self) -> Toleration:
        if not self.key and self.operator != "Exists":
            raise wrong_shape('needs operator="Exists" when it names no key')
        if self.operator == "Exists" and self.value:
            raise wrong_shape('has no value with operator="Exists"')
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise wrong_shape('has toleration_seconds with effect="NoExecute" alone')
        if self.key:
            label_key(self.key)
        if self.value:
            label_value(self.value)
        return self


class Sandbox(Part):
    """Where Sandboxes are placed, and their Size when a Workspace states none.

    Args:
        node_selector: labels that a node must have.
        tolerations: taints that a Sandbox may be placed beside.
        resources: the default Size, field by field.
    """

    node_selector: Labels = Field(default_factory=dict)
    tolerations: Annotated[Sequence[Toleration], AfterValidator(as_tuple)] = ()
    resources: Size | None = None


class PriorityClasses(Part):
    """PriorityClasses that exist, in place of those that jr2 makes.

    Args:
        control: for the Orchestrator and what serves it.
        sandbox: for Sandboxes.
    """

    control: ObjectName | None = None
    sandbox: ObjectName | None = None


class Operator(Part):
    """What the Instance says about the operator of the cluster.

    Args:
        manage: `False` leaves the operator to somebody else.
    """

    manage: StrictBool = True


class Config(Part):
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
        network: who else may connect to the Orchestrator.

    Raises:
        ConfigInvalid: the shape is wrong; it names the first wrong field.
    """

    name: Annotated[str | None, AfterValidator(legal_name)] = None
    registry: RegistryHome = None
    kit_registry: RegistryHome = None
    platforms: Annotated[Sequence[Word] | None, AfterValidator(lambda v: v and as_tuple(v))] = None
    git: Git = Git()
    secrets: Annotated[Sequence[Secret], AfterValidator(as_tuple)] = ()
    harness: Harness = Harness()
    sandbox: Sandbox = Sandbox()
    priority_classes: PriorityClasses = PriorityClasses()
    operator: Operator = Operator()
    network: Network = Network()

    def _keep(self, data: dict[str, Any], error: ValidationError) -> None:
        raise invalid(error, Config) from None

    def revealed(self) -> dict[str, Any]:
        """Return the config as JSON with its secret values, for the pipe to a process of ours.

        `Config.model_validate` of it gives an equal config.
        """
        return self.model_dump(mode="json", context={"reveal": True})
