"""The entries of `secrets` and the key of the own provider, with what uses each of them.

A Harness pod holds an entry when it is bound to a host: by its `hosts`, or because it is a known
model key. An Effect may name any entry. An entry that neither a pod nor an Effect of this Instance
uses needs no value.

Source: spec/authoring.md §3.5, seed 003 (Rules, `secrets`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pydantic import SecretStr

from jr2 import names
from jr2.config import Config, SecretKeyRef
from jr2.held import DEFAULT_HEADERS
from jr2.model_keys import MODEL_KEYS, ModelKey
from jr2.walk import WalkedParts

from .targets import BadTarget, Target, parse_target, url_target

Effector = Literal["instance-effector", "sandbox-effector"]
PROVIDER_FIELD: Final = "harness.provider.api_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One secret, as the config says it and as the Machines use it.

    Args:
        where: its place in the config, such as `secrets[0]`.
        value_at: the place of its value.
        name: its name.
        value: its value, when the config gives one.
        value_from: the Secret that holds it, in place of a value.
        targets: the hosts that it is bound to, sorted; none when no Harness pod holds it.
        headers: the headers that may carry it.
        paths: the path prefixes that it may be sent to; `None` for each path.
        held: a Harness pod of this Instance holds it.
        effectors: the Effectors whose Effects name it.
    """

    where: str
    value_at: str
    name: str
    value: SecretStr | None = field(default=None, repr=False)
    value_from: SecretKeyRef | None = None
    targets: tuple[Target, ...] = ()
    headers: tuple[str, ...] = DEFAULT_HEADERS
    paths: tuple[str, ...] | None = None
    held: bool = False
    effectors: frozenset[Effector] = frozenset()

    @property
    def is_used(self) -> bool:
        """Something of this Instance needs the value."""
        return self.held or bool(self.effectors)


def has_harness(parts: Sequence[WalkedParts]) -> bool:
    """Say whether a pod of the Instance runs a Harness, and so holds what is bound to a host."""
    return any(part.sandboxes or part.menu_only for part in parts)


def named_by_effects(parts: Sequence[WalkedParts]) -> dict[str, frozenset[Effector]]:
    """Return the Effectors that need each secret which an Effect names."""
    found: dict[str, set[Effector]] = {}
    for part in parts:
        for effect in part.effects:
            if effect.secret is None:
                continue
            needing = found.setdefault(effect.secret, set())
            if effect.place in ("instance-effector", "sandbox-effector"):
                needing.add(effect.place)
    return {name: frozenset(places) for name, places in found.items()}


def provider_targets(provider: str, catalog: Mapping[str, Target]) -> Target | None:
    """Return where a provider of the catalog is called; `None` when it has no single host.

    Args:
        provider: its id.
        catalog: the gateways of the config.
    """
    if provider in catalog:
        return catalog[provider]
    hosts = {key.host for key in MODEL_KEYS.values() if provider in key.providers and key.host}
    return Target(hosts.pop()) if len(hosts) == 1 else None


def gateways(config: Config) -> dict[str, Target]:
    """Return the gateways that `harness.catalog` names; a wrong one is left to the rules."""
    found: dict[str, Target] = {}
    for provider, gateway in config.harness.catalog.items():
        try:
            found[provider] = url_target(gateway.base_url)
        except BadTarget:
            continue
    return found


def key_targets(key: ModelKey, catalog: Mapping[str, Target]) -> tuple[Target, ...]:
    """Return the hosts that a known model key is bound to when it names none."""
    found = (provider_targets(provider, catalog) for provider in key.providers)
    return tuple(sorted({target for target in found if target is not None}))


def entries(config: Config, parts: Sequence[WalkedParts]) -> tuple[Entry, ...]:
    """Return every entry, in the order of the config; the key of the own provider is the last.

    Args:
        config: the config. A host that is wrong is left out here; `rules` refuses it.
        parts: what the Machines carry.
    """
    return tuple(_entries(config, parts))


def _entries(config: Config, parts: Sequence[WalkedParts]) -> Iterator[Entry]:
    pods, effects, catalog = has_harness(parts), named_by_effects(parts), gateways(config)
    for index, secret in enumerate(config.secrets):
        key = MODEL_KEYS.get(secret.name)
        if secret.hosts is not None:
            targets = _parsed(secret.hosts)
        else:
            targets = () if key is None else key_targets(key, catalog)
        yield Entry(
            where=f"secrets[{index}]",
            value_at=f"secrets[{index}].value",
            name=secret.name,
            value=secret.value,
            value_from=secret.value_from,
            targets=targets,
            headers=tuple(secret.headers) if secret.headers is not None else DEFAULT_HEADERS,
            paths=None if secret.paths is None else tuple(secret.paths),
            held=pods and bool(targets),
            effectors=effects.get(secret.name, frozenset()),
        )
    provider = config.harness.provider
    if provider is not None and provider.api_key is not None:
        yield Entry(
            where=PROVIDER_FIELD,
            value_at=PROVIDER_FIELD,
            name=names.PROVIDER_API_KEY,
            value=provider.api_key,
            targets=_parsed([provider.base_url], url_target),
            held=pods,
        )


def _parsed(
    hosts: Sequence[str], parse: Callable[[str], Target] = parse_target
) -> tuple[Target, ...]:
    found: set[Target] = set()
    for host in hosts:
        try:
            found.add(parse(host))
        except BadTarget:
            continue
    return tuple(sorted(found))
