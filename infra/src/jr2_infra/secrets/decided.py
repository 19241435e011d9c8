"""What an Instance wants of secrets, judged and put together for the plan.

`check_values` is step 10 of `jr2 up`; `hold` says what is written. The manifest, the map of trusted
certificates and the Secrets follow from the config, the Machines and what the cluster holds already.

Source: spec/converge.md §5.3, §5.4 and §9, design §6.3.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jr2 import names
from jr2.config import Config, EnvFrom, EnvVar
from jr2.errors import StepFailed
from jr2.held import (
    BoundHost,
    HeldManifest,
    HeldSecret,
    LiteralSource,
    SecretSource,
    leaf_stem,
)
from jr2.walk import WalkedParts

from . import references, trust, values
from .entries import Entry, entries, has_harness
from .references import Named

if TYPE_CHECKING:
    from .authority import Pki
    from .certificates import Certificates


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretWants:
    """What an Instance wants of secrets.

    Args:
        entries: the secrets that something of it uses.
        env: `harness.env`.
        env_from: `harness.env_from`.
        ca_bundle: the user's certificates, PEM.
        harness: a pod of it runs a Harness.
    """

    entries: tuple[Entry, ...] = ()
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFrom, ...] = ()
    ca_bundle: str | None = None
    harness: bool = False

    @classmethod
    def of(cls, config: Config, parts: Sequence[WalkedParts], ca_bundle: str | None) -> SecretWants:
        """Return what a config and the Machines want.

        Args:
            config: the config, which the rules let through.
            parts: what the Machines carry, one for each Workflow.
            ca_bundle: what `trust.read_bundle` gave.
        """
        return cls(
            entries=tuple(entry for entry in entries(config, parts) if entry.is_used),
            env=tuple(config.harness.env),
            env_from=tuple(config.harness.env_from),
            ca_bundle=ca_bundle,
            harness=has_harness(parts),
        )

    def named_secrets(self) -> frozenset[str]:
        """Return the Secrets that it names and a person keeps."""
        return references.named_secrets(self.entries, self.env, self.env_from)

    def named_config_maps(self) -> frozenset[str]:
        """Return the ConfigMaps that it names and a person keeps."""
        return references.named_config_maps(self.env, self.env_from)

    def env_values(self) -> dict[str, str]:
        """Return the data of `jr2-harness-env`: the variables with a literal value."""
        return {one.name: one.value.get_secret_value() for one in self.env if one.value is not None}

    def held_values(self) -> dict[str, str]:
        """Return the data of `jr2-held-secrets`: the literal values that Custodians hold."""
        return _literal(entry for entry in self.entries if entry.held)

    def effect_values(self) -> dict[str, str]:
        """Return the data of `jr2-effect-secrets`: the literal values that Effectors hold."""
        return _literal(entry for entry in self.entries if entry.effectors)

    def read_by_harness(self, held: Held) -> dict[str, str]:
        """Return what a Harness and its Custodian read of secrets at their start, by name.

        It moves a digest on their pod template, so that new values start the pod once.

        Args:
            held: what is decided for the Custodian.
        """
        return {
            names.HARNESS_ENV_SECRET: json.dumps(self.env_values(), sort_keys=True),
            names.HELD_SECRETS: json.dumps(self.held_values(), sort_keys=True),
            names.HELD_TLS: json.dumps(held.fingerprints(), sort_keys=True),
            names.CA_MAP: held.bundles.get(names.KEY_CA_CERTIFICATE, ""),
        }

    def manifest(self) -> HeldManifest:
        """Return `held.json`."""
        held = sorted((entry for entry in self.entries if entry.held), key=lambda e: e.name)
        return HeldManifest(secrets=tuple(_held(entry) for entry in held))


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What is written so that Custodians hold secrets.

    Args:
        manifest: `held.json`.
        pki: the authority and its certificates; `None` while nothing is held.
        bundles: the data of the map `jr2-ca`; empty without one.
    """

    manifest: HeldManifest
    pki: Pki | None = field(repr=False)
    bundles: Mapping[str, str] = field(repr=False)

    def fingerprints(self) -> dict[str, str]:
        """Return the fingerprint of each certificate, by the stem of its files."""
        leaves = {} if self.pki is None else self.pki.leaves
        return {stem: leaf.fingerprint() for stem, leaf in leaves.items()}


def check_values(wants: SecretWants, named: Named, namespace: str) -> None:
    """Judge step 10: values that are there and can be used, and what the config names.

    Args:
        wants: what the Instance wants.
        named: what the cluster holds of what it names.
        namespace: the Instance's namespace.

    Raises:
        StepFailed: all that is wrong, a line for each; no line holds a value.
    """
    found = [
        *references.env_from_problems(wants.env_from, named, namespace),
        *(values.env_problems(wants.env) if wants.harness else ()),
        *references.env_problems(wants.env, named),
        *values.problems(wants.entries),
        *references.entry_problems(wants.entries, named),
    ]
    if not found:
        found = list(references.leak_problems(wants.entries, wants.env, wants.env_from, named))
    if found:
        raise StepFailed("\nerror: ".join(found))


def hold(
    wants: SecretWants,
    instance: str,
    live_ca: Mapping[str, Any] | None,
    live_tls: Mapping[str, Any] | None,
    certificates: Certificates,
) -> Held:
    """Decide what is written so that Custodians hold secrets.

    Args:
        wants: what the Instance wants.
        instance: its name.
        live_ca: the Secret `jr2-held-ca` as the API gave it, or `None`.
        live_tls: the Secret `jr2-held-tls`, likewise.
        certificates: makes what is missing.
    """
    targets = [target for entry in wants.entries if entry.held for target in entry.targets]
    pki = None
    if targets:
        # Here, since it loads OpenSSL, and most converges hold nothing.
        from .authority import decide_pki

        pki = decide_pki(instance, targets, live_ca, live_tls, certificates)
    return Held(
        manifest=wants.manifest(),
        pki=pki,
        bundles=trust.bundles(wants.ca_bundle, None if pki is None else pki.authority.certificate),
    )


def _held(entry: Entry) -> HeldSecret:
    ref = entry.value_from
    return HeldSecret(
        name=entry.name,
        source=LiteralSource() if ref is None else SecretSource(secret=ref.name, key=ref.key),
        hosts=tuple(
            BoundHost(host=one.host, port=one.port, leaf=leaf_stem(one.host, one.port))
            for one in entry.targets
        ),
        headers=entry.headers,
        paths=entry.paths,
    )


def _literal(found: Iterable[Entry]) -> dict[str, str]:
    return {
        entry.name: entry.value.get_secret_value() for entry in found if entry.value is not None
    }
