"""The variables of a Harness container that the config gives, in the order in which they hold.

A value that the config states lies in the Secret `jr2-harness-env`, so that no pod template holds
one; what the config takes from elsewhere stands in the container as it was written.

Source: spec/converge.md §5.7 and §9.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jr2 import names
from jr2.config import ConfigMapKeyRef, EnvFrom, EnvVar, FieldRef, SecretKeyRef


def env_from(sources: Sequence[EnvFrom]) -> list[dict[str, Any]]:
    """Return `envFrom`: the stated values first, then what the config names."""
    found: list[dict[str, Any]] = [{"secretRef": {"name": names.HARNESS_ENV_SECRET}}]
    for source in sources:
        if source.secret is not None:
            found.append({"secretRef": {"name": source.secret}})
        else:
            found.append({"configMapRef": {"name": source.config_map}})
    return found


def referenced(variables: Sequence[EnvVar]) -> list[dict[str, Any]]:
    """Return the variables of the config that come from elsewhere."""
    return [
        {"name": variable.name, "valueFrom": _source(variable.value_from)}
        for variable in variables
        if variable.value_from is not None
    ]


_KEYED: Final[Mapping[type[SecretKeyRef | ConfigMapKeyRef], str]] = {
    SecretKeyRef: "secretKeyRef",
    ConfigMapKeyRef: "configMapKeyRef",
}


def _source(source: SecretKeyRef | ConfigMapKeyRef | FieldRef) -> dict[str, Any]:
    if isinstance(source, FieldRef):
        return {"fieldRef": {"fieldPath": source.field_path}}
    return {_KEYED[type(source)]: {"name": source.name, "key": source.key}}
