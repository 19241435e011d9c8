"""The values of an Instance: clear for people in `jr2-instance`, digests for its Orchestrator.

A value that the cluster holds is kept, a value that is missing is made. Whoever deletes a key or
the whole Secret asks for new values: the next converge makes them, and a digest of what the
Orchestrator reads stands on its pod template, so that new values start the pod once. No converge
replaces a value that is there.

Source: spec/converge.md §5.4 and §9.1, spec/runtime.md §1.2, design §6.3.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets as random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from jr2 import names, signed
from jr2.errors import StepFailed

from .. import headers
from ..closed_list import SECRET
from .base import encoded, instance_labels, wanted

VALUE_BYTES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceValues:
    """The generated values of one Instance; never shown.

    Args:
        instance_token: opens every route but the publish.
        publish_token: publishes an Assembly.
        signing_key: base64url of at least 32 bytes; signs Sandbox tokens and Harness bearers.
    """

    instance_token: str = field(repr=False)
    publish_token: str = field(repr=False)
    signing_key: str = field(repr=False)


def mint_values(mint: Callable[[int], str] = random.token_urlsafe) -> InstanceValues:
    """Make new values: unpadded base64url of 32 random bytes each."""
    return InstanceValues(
        instance_token=mint(VALUE_BYTES),
        publish_token=mint(VALUE_BYTES),
        signing_key=mint(VALUE_BYTES),
    )


def kept_values(live: Mapping[str, Any] | None, minted: InstanceValues) -> InstanceValues:
    """Return the values of this converge: what the live Secret holds, else the minted ones.

    Args:
        live: the Secret `jr2-instance` as the API gave it, or `None`.
        minted: what stands in for a key that it lacks.

    Raises:
        StepFailed: a key holds what nobody can use; the value is not shown.
    """
    return InstanceValues(
        instance_token=_token(live, names.KEY_INSTANCE_TOKEN) or minted.instance_token,
        publish_token=_token(live, names.KEY_PUBLISH_TOKEN) or minted.publish_token,
        signing_key=_signing_key(live) or minted.signing_key,
    )


def instance_secret(instance: str, namespace: str, values: InstanceValues) -> dict[str, Any]:
    """Return the wanted Secret `jr2-instance`: the clear values, for people.

    A pod mounts one key of it: the Custodian of the Instance Harness the token of its pod.
    """
    return wanted(
        SECRET,
        names.INSTANCE_SECRET,
        namespace=namespace,
        labels=instance_labels(instance),
        type="Opaque",
        data=encoded(
            {
                names.KEY_INSTANCE_TOKEN: values.instance_token,
                names.KEY_PUBLISH_TOKEN: values.publish_token,
                names.KEY_SIGNING_KEY: values.signing_key,
                names.KEY_INSTANCE_HARNESS_TOKEN: signed.sandbox_token(
                    signed.read_key(values.signing_key), names.INSTANCE_HARNESS
                ),
            }
        ),
    )


def orchestrator_secret(instance: str, namespace: str, values: InstanceValues) -> dict[str, Any]:
    """Return the wanted Secret `jr2-orchestrator`: digests of the tokens, and the signing key."""
    return wanted(
        SECRET,
        names.ORCHESTRATOR,
        namespace=namespace,
        labels=instance_labels(instance),
        type="Opaque",
        data=encoded(_orchestrator_files(values)),
    )


def values_digest(values: InstanceValues) -> str:
    """Return the digest of what the Orchestrator reads, for its pod template."""
    digest = hashlib.sha256()
    for name, text in sorted(_orchestrator_files(values).items()):
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()


def _orchestrator_files(values: InstanceValues) -> dict[str, str]:
    return {
        names.FILE_INSTANCE_TOKEN_DIGEST: hashlib.sha256(
            values.instance_token.encode()
        ).hexdigest(),
        names.FILE_PUBLISH_TOKEN_DIGEST: hashlib.sha256(values.publish_token.encode()).hexdigest(),
        names.FILE_SIGNING_KEY: values.signing_key,
    }


def _token(live: Mapping[str, Any] | None, key: str) -> str | None:
    text = _text(live, key)
    if text is None:
        return None
    if not headers.can_carry(text):
        raise _unusable(live, key, "printable ASCII with no space at its start or end")
    return text


def _signing_key(live: Mapping[str, Any] | None) -> str | None:
    text = _text(live, names.KEY_SIGNING_KEY)
    if text is None:
        return None
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < VALUE_BYTES:
        raise _unusable(live, names.KEY_SIGNING_KEY, f"base64url of {VALUE_BYTES} bytes or more")
    return text


def _text(live: Mapping[str, Any] | None, key: str) -> str | None:
    data = (live or {}).get("data") or {}
    if key not in data:
        return None
    try:
        return base64.b64decode(data[key], validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _unusable(live: Mapping[str, Any] | None, key: str, rule: str) -> StepFailed:
    metadata = (live or {}).get("metadata") or {}
    return StepFailed(
        f'Secret "{metadata.get("name")}" in namespace "{metadata.get("namespace")}" holds a '
        f"{key} that is not {rule}; the value itself is not shown — delete that key, and `jr2 up` "
        "makes a new value"
    )
