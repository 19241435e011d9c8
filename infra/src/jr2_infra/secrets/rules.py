"""The rules on `secrets`, `harness.env`, `harness.env_from` and `harness.catalog` without a cluster.

They need the config and what the Machines carry, so `jr2 check` finds them too. Whether a value is
there and can be used is no rule of these: `values` and `references` judge it in step 10 of `jr2 up`,
and a check in CI runs without credentials. No text holds a value.

Source: spec/authoring.md §3.5 (refusals 1–9 and 11–13), seed 003 ("Use a hosted provider gives the
other refusals of `secrets` and `harness.env`"), ADR-0059.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from jr2 import names
from jr2.config import Config, EnvVar, SecretKeyRef
from jr2.errors import Jr2Error, StepFailed
from jr2.model_keys import MODEL_KEYS, PROVIDERS
from jr2.walk import WalkedParts

from . import variables
from .entries import Entry, entries, gateways, named_by_effects, provider_targets
from .targets import BadTarget, Target, parse_target, url_target
from .wire_rules import header_problems, path_problems

Found = Iterator[tuple[str, str]]
"""Where something is wrong in the config, and what."""

ADR: Final = "(ADR-0059)"
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OURS: Final = frozenset(
    {
        names.INSTANCE_SECRET,
        names.ORCHESTRATOR,
        names.HARNESS_ENV_SECRET,
        names.EFFECT_SECRETS,
    }
)
_OUR_PREFIXES: Final = (names.STAND_IN_PREFIX, names.GIT_SECRET_PREFIX)
_SANDBOX_TOKEN: Final = re.compile(r"ws-.*-token")


def refusal(config: Config, parts: Sequence[WalkedParts], root: Path) -> Jr2Error | None:
    """Return what is wrong with the secrets of a config, all of it in one error, or `None`.

    Args:
        config: the config.
        parts: what the Machines carry, one for each Workflow.
        root: the Instance folder.
    """
    file = root / names.CONFIG_FILE
    lines = [f"error: {file} at {field}: {problem} {ADR}" for field, problem in _all(config, parts)]
    return StepFailed("\n".join(lines).removeprefix("error: ")) if lines else None


def warnings(config: Config, parts: Sequence[WalkedParts]) -> list[str]:
    """Return what is legal in the secrets of a config and still not what was meant.

    Args:
        config: the config.
        parts: what the Machines carry, one for each Workflow.
    """
    said = [
        f"harness.env[{index}]: {variable.name} signs requests, and a Custodian cannot sign: every "
        f"Agent can read it — call the service through a gateway that signs {ADR}"
        for index, variable in enumerate(config.harness.env)
        if variable.name in variables.SIGNING
    ]
    effects = named_by_effects(parts)
    said += [
        f"secrets[{index}]: {secret.name} names no hosts, so no pod holds it, and no Effect names "
        f"it {ADR}"
        for index, secret in enumerate(config.secrets)
        if secret.hosts is None and secret.name not in MODEL_KEYS and secret.name not in effects
    ]
    return said


def is_ours(secret: str) -> bool:
    """Say whether a Secret of this name is one that jr2 makes."""
    return (
        secret in _OURS
        or secret.startswith(_OUR_PREFIXES)
        or _SANDBOX_TOKEN.fullmatch(secret) is not None
    )


def _all(config: Config, parts: Sequence[WalkedParts]) -> Found:
    found = entries(config, parts)
    yield from _names(config)
    yield from _hosts(config, parts)
    yield from _shapes(config)
    yield from _shared(found)
    yield from _harness(config)
    yield from _missed_hosts(config, parts, found)
    yield from _env(config, found)
    yield from _leaks(config)


def _names(config: Config) -> Found:
    of_env = {variable.name for variable in config.harness.env}
    first: dict[str, int] = {}
    for index, secret in enumerate(config.secrets):
        where, name = f"secrets[{index}].name", secret.name
        if name.startswith(names.RESERVED_PREFIX):
            yield where, f"{name} starts with {names.RESERVED_PREFIX}, as jr2's own variables do"
        elif name in variables.NETWORK:
            yield where, f"{name} says how a Harness reaches the network, and is no secret"
        elif name in variables.OF_THE_CONTAINER:
            yield where, f"{name} is a variable that every program of the container reads"
        elif name in first:
            yield where, f"{name} is held already, by secrets[{first[name]}]"
        elif name in of_env:
            yield where, f"{name} is in harness.env too, where every Agent reads it — remove one"
        first.setdefault(name, index)


def _hosts(config: Config, parts: Sequence[WalkedParts]) -> Found:
    effects = named_by_effects(parts)
    catalog = gateways(config)
    for index, secret in enumerate(config.secrets):
        where = f"secrets[{index}]"
        key = MODEL_KEYS.get(secret.name)
        if secret.hosts is not None:
            if not secret.hosts:
                yield f"{where}.hosts", "is empty — name the hosts, or leave it out"
            for position, host in enumerate(secret.hosts):
                problem = _target_problem(host)
                if problem is not None:
                    yield f"{where}.hosts[{position}]", problem
        elif (
            key is not None
            and secret.name not in effects
            and not any(provider_targets(provider, catalog) for provider in key.providers)
        ):
            listed = " and ".join(f'"{provider}"' for provider in key.providers)
            yield (
                where,
                f'{secret.name} has no hosts, and {listed} has no single one — add hosts=["…"]',
            )


def _target_problem(host: str) -> str | None:
    try:
        parse_target(host)
    except BadTarget as bad:
        return str(bad)
    return None


def _shapes(config: Config) -> Found:
    for index, secret in enumerate(config.secrets):
        for field, given, judge in (
            ("headers", secret.headers, header_problems),
            ("paths", secret.paths, path_problems),
        ):
            if given is None:
                continue
            if not given:
                yield f"secrets[{index}].{field}", "is empty — name one, or leave it out"
            for position, problem in judge(given):
                yield f"secrets[{index}].{field}[{position}]", problem


def _shared(found: Sequence[Entry]) -> Found:
    """Two secrets that one header of one host could carry: a Custodian could not tell which."""
    for position, entry in enumerate(found):
        for other in found[:position]:
            hosts = sorted(set(entry.targets) & set(other.targets))
            headers = [header for header in entry.headers if header in other.headers]
            if hosts and headers and entry.name != other.name:
                yield (
                    entry.where,
                    f'{entry.name} and {other.name} ({other.where}) are both bound to "{hosts[0]}" '
                    f'and may both be in the header "{headers[0]}" — give each its own headers',
                )


def _harness(config: Config) -> Found:
    provider = config.harness.provider
    if provider is not None and provider.api_key is not None:
        try:
            url_target(provider.base_url)
        except BadTarget as bad:
            yield "harness.provider.base_url", f"{bad} (api_key is set)"
    for name, gateway in config.harness.catalog.items():
        where = f'harness.catalog["{name}"]'
        if provider is not None and name == provider.id:
            yield where, "is the id of harness.provider, which has its own base_url"
        elif name not in PROVIDERS:
            yield where, "is no provider of the catalog; one of your own is harness.provider"
        try:
            url_target(gateway.base_url)
        except BadTarget as bad:
            yield f"{where}.base_url", str(bad)


def _missed_hosts(config: Config, parts: Sequence[WalkedParts], found: Sequence[Entry]) -> Found:
    """Hosts of a model key that leave out the one where the models of an Agent are called."""
    catalog = gateways(config)
    called: dict[str, tuple[str, Target]] = {}
    for part in parts:
        for agent in part.agents:
            provider = (agent.model or "").partition("/")[0]
            target = provider_targets(provider, catalog)
            if target is not None:
                called.setdefault(provider, (agent.slot, target))
    for secret, entry in zip(config.secrets, found, strict=False):
        key = MODEL_KEYS.get(secret.name)
        if key is None or secret.hosts is None:
            continue
        for provider in key.providers:
            if provider not in called:
                continue
            slot, target = called[provider]
            if target not in entry.targets:
                yield (
                    f"{entry.where}.hosts",
                    f'leaves out "{target}", where the model of Agent "{slot}" is called with '
                    f"{secret.name}",
                )


def _env(config: Config, found: Sequence[Entry]) -> Found:
    held = [entry for entry in found if entry.targets]
    seen: set[str] = set()
    for index, variable in enumerate(config.harness.env):
        where, name = f"harness.env[{index}]", variable.name
        if not _VARIABLE.fullmatch(name):
            yield f"{where}.name", f'"{name}" is no name of a variable'
        elif name.startswith(names.RESERVED_PREFIX):
            yield f"{where}.name", f"{name} starts with JR2_, as jr2's own variables do"
        elif name in MODEL_KEYS:
            yield (
                where,
                f"{name} is a model key, and every Agent could read it there — hold it instead: "
                f'secrets=[…, Secret("{name}", value=os.environ.get("{name}"))]',
            )
        elif name in variables.NETWORK and held:
            yield (
                where,
                f"{name} would lead a Harness past the Custodian that holds {held[0].name} "
                f"({held[0].where})",
            )
        elif name in seen:
            yield f"{where}.name", f"{name} stands in harness.env already"
        if variable.value is not None and variable.value_from is not None:
            yield where, f"{name} needs exactly one of value or value_from, not both"
        seen.add(name)


def _leaks(config: Config) -> Found:
    """Secrets of jr2 that a config names, and held ones that it also gives to the Harness."""
    held: dict[tuple[str, str], str] = {}
    for index, secret in enumerate(config.secrets):
        if secret.value_from is None:
            continue
        where = f"secrets[{index}].value_from"
        if is_ours(secret.value_from.name):
            yield where, _own_text(secret.value_from.name)
        held.setdefault((secret.value_from.name, secret.value_from.key), f"secrets[{index}]")
    for index, variable in enumerate(config.harness.env):
        ref = _secret_of(variable)
        if ref is None:
            continue
        where = f"harness.env[{index}].value_from"
        if is_ours(ref.name):
            yield where, _own_text(ref.name)
        elif (ref.name, ref.key) in held:
            yield where, _leak_text(f'key "{ref.key}" of Secret "{ref.name}"', held, ref)
    for index, source in enumerate(config.harness.env_from):
        if source.secret is None:
            continue
        where = f"harness.env_from[{index}]"
        if is_ours(source.secret):
            yield where, _own_text(source.secret)
        for (name, key), holder in held.items():
            if name == source.secret:
                yield (
                    where,
                    f'gives the Harness every key of Secret "{name}", and {holder} holds "{key}" of '
                    "it — keep the held value in a Secret of its own",
                )


def _secret_of(variable: EnvVar) -> SecretKeyRef | None:
    return variable.value_from if isinstance(variable.value_from, SecretKeyRef) else None


def _own_text(name: str) -> str:
    return f'names Secret "{name}", which jr2 makes and keeps for itself'


def _leak_text(what: str, held: dict[tuple[str, str], str], ref: SecretKeyRef) -> str:
    return (
        f"gives the Harness {what}, which {held[(ref.name, ref.key)]} holds — every Agent could "
        "read it there"
    )
