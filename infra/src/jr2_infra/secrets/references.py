"""The Secrets and ConfigMaps that the config names and a person keeps: the rest of step 10.

Each must exist, and each key that is named must be in it. A value that is held must not reach the
Harness by another way, and no model key may reach it at all. What was read is judged here and goes
no further: a value is never shown, and none is written anywhere.

Source: seed 003 (Rules, `harness.envFrom` and `valueFrom`), spec/authoring.md §3.5 (refusals 1, 10
and 13), field case 6, ADR-0059.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jr2.config import ConfigMapKeyRef, EnvFrom, EnvVar, SecretKeyRef
from jr2.model_keys import MODEL_KEYS

from .entries import Entry
from .rules import ADR
from .values import value_problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What the config names, as the cluster holds it.

    Args:
        secrets: the Secrets that exist, by name.
        config_maps: the ConfigMaps that exist, by name.
    """

    secrets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    config_maps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)


def named_secrets(
    entries: Sequence[Entry], env: Sequence[EnvVar], env_from: Sequence[EnvFrom]
) -> frozenset[str]:
    """Return the names of the Secrets that a config names."""
    found = {entry.value_from.name for entry in entries if entry.value_from is not None}
    found |= {one.value_from.name for one in env if isinstance(one.value_from, SecretKeyRef)}
    return frozenset(found | {one.secret for one in env_from if one.secret is not None})


def named_config_maps(env: Sequence[EnvVar], env_from: Sequence[EnvFrom]) -> frozenset[str]:
    """Return the names of the ConfigMaps that a config names."""
    found = {one.value_from.name for one in env if isinstance(one.value_from, ConfigMapKeyRef)}
    return frozenset(found | {one.config_map for one in env_from if one.config_map is not None})


def env_from_problems(env_from: Sequence[EnvFrom], named: Named, namespace: str) -> Iterator[str]:
    """Give what is wrong with `harness.env_from`.

    Args:
        env_from: the entries.
        named: what exists.
        namespace: the Instance's namespace.
    """
    for index, source in enumerate(env_from):
        if source.secret is not None:
            kind, name, found = "Secret", source.secret, named.secrets.get(source.secret)
            create = f"create secret generic {name}"
        else:
            assert source.config_map is not None, "the config gives exactly one of the two"
            kind, name = "ConfigMap", source.config_map
            found, create = named.config_maps.get(name), f"create configmap {name}"
        if found is None:
            yield (
                f'harness.env_from references {kind} "{name}", which does not exist in namespace '
                f'"{namespace}" — create it first: kubectl -n {namespace} {create} '
                "--from-literal=KEY=..."
            )
            continue
        for key in sorted((found.get("data") or {}).keys() & MODEL_KEYS.keys()):
            yield (
                f'harness.env_from[{index}]: {kind} "{name}" holds the model key {key}, and every '
                f"Agent could read it there — take it out, and hold it: "
                f'secrets=[…, Secret("{key}", value=os.environ.get("{key}"))] {ADR}'
            )


def env_problems(env: Sequence[EnvVar], named: Named) -> Iterator[str]:
    """Give what `harness.env` names and the cluster does not hold."""
    for index, variable in enumerate(env):
        ref = variable.value_from
        if isinstance(ref, SecretKeyRef):
            kind, found = "Secret", named.secrets.get(ref.name)
        elif isinstance(ref, ConfigMapKeyRef):
            kind, found = "ConfigMap", named.config_maps.get(ref.name)
        else:
            continue
        where = f"harness.env[{index}].value_from"
        if found is None:
            create = "secret generic" if kind == "Secret" else "configmap"
            yield (
                f'{where} names {kind} "{ref.name}", which does not exist in the instance\'s '
                f"namespace — create it first: kubectl create {create} {ref.name} "
                f"--from-literal={ref.key}=... (ADR-0019)"
            )
        elif ref.key not in (found.get("data") or {}):
            yield f'{where} names key "{ref.key}" of {kind} "{ref.name}", which has no such key'


def entry_problems(entries: Sequence[Entry], named: Named) -> Iterator[str]:
    """Give what is wrong with the Secrets that entries of `secrets` name.

    Args:
        entries: those that are used.
        named: what exists.
    """
    for entry in entries:
        ref = entry.value_from
        if ref is None or entry.value is not None:
            continue
        where, found = f"{entry.where}.value_from", named.secrets.get(ref.name)
        if found is None:
            yield (
                f'{where} names Secret "{ref.name}", which does not exist in the instance\'s '
                f"namespace — create it first: kubectl create secret generic {ref.name} "
                f"--from-literal={ref.key}=... (ADR-0019, ADR-0059)"
            )
        elif ref.key not in (found.get("data") or {}):
            yield (
                f'{where} names key "{ref.key}" of Secret "{ref.name}", which has no such key {ADR}'
            )
        else:
            what = f'{where}: key "{ref.key}" of Secret "{ref.name}"'
            value = _value(found, ref.key)
            if not value:
                yield f"{what} is empty — give it a value {ADR}"
            elif (problem := value_problem(value.decode("utf-8", "replace"))) is not None:
                yield f"{what} {problem}"


def leak_problems(
    entries: Sequence[Entry], env: Sequence[EnvVar], env_from: Sequence[EnvFrom], named: Named
) -> Iterator[str]:
    """Give the ways by which a value that is held would reach the Harness all the same.

    Args:
        entries: those that are used.
        env: `harness.env`.
        env_from: `harness.env_from`.
        named: what exists.
    """
    held = {
        value: entry for entry in reversed(entries) if entry.held and (value := _of(entry, named))
    }
    for where, value in _reaching(env, env_from, named):
        if value in held:
            entry = held[value]
            yield (
                f"{where} is the value that {entry.where} holds as {entry.name}, and every Agent "
                f"could read it there — remove it {ADR}"
            )


def _reaching(
    env: Sequence[EnvVar], env_from: Sequence[EnvFrom], named: Named
) -> Iterator[tuple[str, bytes]]:
    """Give each value that a Harness can read, with the place that it comes from."""
    for index, variable in enumerate(env):
        if variable.value is not None:
            text = variable.value.get_secret_value()
            yield f"harness.env[{index}].value", text.encode("utf-8", "surrogateescape")
        elif isinstance(variable.value_from, SecretKeyRef | ConfigMapKeyRef):
            ref = variable.value_from
            source = (named.secrets if isinstance(ref, SecretKeyRef) else named.config_maps).get(
                ref.name
            )
            if source is not None and ref.key in (source.get("data") or {}):
                yield f"harness.env[{index}].value_from", _value(source, ref.key)
    for index, one in enumerate(env_from):
        if one.secret is not None:
            kind, name, found = "Secret", one.secret, named.secrets.get(one.secret)
        else:
            kind, name = "ConfigMap", one.config_map or ""
            found = named.config_maps.get(name)
        for key in (found or {}).get("data") or {}:
            place = f'harness.env_from[{index}]: key "{key}" of {kind} "{name}"'
            yield place, _value(found or {}, key)


def _of(entry: Entry, named: Named) -> bytes:
    if entry.value is not None:
        return entry.value.get_secret_value().encode("utf-8", "surrogateescape")
    if entry.value_from is None:
        return b""
    found = named.secrets.get(entry.value_from.name) or {}
    return _value(found, entry.value_from.key) if found.get("data") else b""


def _value(obj: Mapping[str, Any], key: str) -> bytes:
    """Return the bytes of a key; what the API gave as base64 is decoded."""
    text = str((obj.get("data") or {}).get(key, ""))
    if obj.get("kind") == "ConfigMap":
        return text.encode()
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
