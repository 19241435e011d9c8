"""The objects that hold an Instance's secrets: what Custodians, Harnesses and Effectors mount.

Each Secret has one reader, so that no pod mounts what another one needs: literal values and
certificates are for Custodians, the authority with its key is for nobody, values of Effects are for
Effectors, and variables are for Harness containers. All but the last are there only while they hold
something.

Source: spec/converge.md §5.3 and §5.4, design §6.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jr2 import names

from ..closed_list import CONFIG_MAP, SECRET
from ..secrets.decided import Held, SecretWants
from .base import encoded, instance_labels, wanted


def secrets(
    instance: str, namespace: str, wants: SecretWants, held: Held
) -> tuple[dict[str, Any], ...]:
    """Return the wanted Secrets.

    Args:
        instance: the Instance.
        namespace: its namespace.
        wants: what it wants of secrets.
        held: what is decided for its Custodians.
    """
    return tuple(_secrets(instance, namespace, wants, held))


def trust_map(instance: str, namespace: str, held: Held) -> tuple[dict[str, Any], ...]:
    """Return the wanted ConfigMap `jr2-ca`; none when there is nothing to trust.

    Args:
        instance: the Instance.
        namespace: its namespace.
        held: what is decided for its Custodians.
    """
    if not held.bundles:
        return ()
    return (
        wanted(
            CONFIG_MAP,
            names.CA_MAP,
            namespace=namespace,
            labels=instance_labels(instance),
            data=dict(held.bundles),
        ),
    )


def _secrets(
    instance: str, namespace: str, wants: SecretWants, held: Held
) -> Iterator[dict[str, Any]]:
    def secret(name: str, values: Mapping[str, str]) -> dict[str, Any]:
        return wanted(
            SECRET,
            name,
            namespace=namespace,
            labels=instance_labels(instance),
            type="Opaque",
            # The API drops data that are empty, so asking for them would differ each time.
            **({"data": encoded(values)} if values else {}),
        )

    yield secret(names.HARNESS_ENV_SECRET, wants.env_values())
    for name, values in (
        (names.HELD_SECRETS, wants.held_values()),
        (names.EFFECT_SECRETS, wants.effect_values()),
    ):
        if values:
            yield secret(name, values)
    if held.pki is None:
        return
    files: dict[str, str] = {}
    for stem, leaf in sorted(held.pki.leaves.items()):
        files |= {f"{stem}.crt": leaf.certificate, f"{stem}.key": leaf.key}
    yield secret(names.HELD_TLS, files)
    authority = held.pki.authority
    yield secret(
        names.HELD_CA,
        {names.KEY_CA_CERTIFICATE: authority.certificate, names.KEY_CA_KEY: authority.key},
    )
