"""Held secrets as `held.json` tells of them: names, hosts and headers, and never a value.

The Converge writes it, the Orchestrator reads it for each Sandbox that it makes, and a Custodian
follows it. What a Harness sees in the place of a value is its Stand-in, which is public and means
something to the Custodian alone, toward a host that the secret is bound to.

Source: spec/runtime.md §3.2–3.4, spec/converge.md §9.3.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from . import names

DEFAULT_HEADERS: Final = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
"""The headers that may carry a secret which names none."""
_STEM: Final = 16


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class LiteralSource(_Shape):
    """The value lies in the Secret `jr2-held-secrets`, under the secret's name."""

    kind: Literal["literal"] = "literal"


class SecretSource(_Shape):
    """The value lies in a Secret that a person keeps.

    Args:
        secret: the Secret.
        key: its key.
    """

    kind: Literal["secret"] = "secret"
    secret: str
    key: str


class BoundHost(_Shape):
    """A host that a secret may be sent to.

    Args:
        host: a DNS name in lower case, or an IP address.
        port: its port.
        leaf: the stem of its certificate in the Secret `jr2-held-tls`.
    """

    host: str
    port: int
    leaf: str


class HeldSecret(_Shape):
    """One held secret.

    Args:
        name: the variable that the Harness sees, with the Stand-in in it.
        source: where the Custodian's pod finds the value.
        hosts: where it may be sent.
        headers: the headers that may carry it, in lower case.
        paths: the path prefixes that it may be sent to; `None` for each path.
    """

    name: str
    source: Annotated[LiteralSource | SecretSource, Field(discriminator="kind")]
    hosts: tuple[BoundHost, ...]
    headers: tuple[str, ...]
    paths: tuple[str, ...] | None = None


class HeldManifest(_Shape):
    """The whole of `held.json`.

    Args:
        version: of this shape.
        secrets: by name.
    """

    version: Literal[1] = 1
    secrets: tuple[HeldSecret, ...] = ()

    def text(self) -> str:
        """Return the one JSON text of this manifest; its digest is what a publish waits for."""
        return json.dumps(
            self.model_dump(mode="json", exclude_none=True),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
        )


def stand_in(name: str) -> str:
    """Return what a Harness sees in the place of a value.

    Args:
        name: the secret's name.
    """
    return f"{names.STAND_IN_PREFIX}{name}"


def leaf_stem(host: str, port: int) -> str:
    """Return what the files of a bound host's certificate are called, without their ending."""
    return hashlib.sha256(f"{host}:{port}".encode()).hexdigest()[:_STEM]
