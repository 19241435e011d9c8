"""What the pod tells the Harness: whom it opens to, and which Agents it is for.

A Harness without the digest of its bearer would open to anybody, so it does not start.

Source: spec/runtime.md §2.3 (Boot), spec/converge.md §5.7.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from jr2 import names

_DIGEST_BYTES: Final = 32
_HIGHEST_PORT: Final = 65_535


class BadSettings(Exception):
    """A variable of the pod is missing or is not what it should be; its value is not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What one Harness is told.

    Args:
        bearer_digest: the SHA-256 of the one bearer that it opens to.
        menu_only: it runs Turns of Agents without a workspace, and of no others.
        port: where it listens.
    """

    bearer_digest: bytes = field(repr=False)
    menu_only: bool
    port: int


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the settings.

    Raises:
        BadSettings: the digest is missing or is none, or the port is none.
    """
    port = environment.get("PORT", str(names.HARNESS_PORT))
    if not port.isascii() or not port.isdigit() or int(port) > _HIGHEST_PORT:
        raise BadSettings("PORT is no port")
    return Settings(
        bearer_digest=_digest(environment.get(names.ENV_HARNESS_TOKEN_DIGEST)),
        menu_only=environment.get(names.ENV_MENU_ONLY) == "1",
        port=int(port),
    )


def _digest(text: str | None) -> bytes:
    if not text:
        raise BadSettings(f"{names.ENV_HARNESS_TOKEN_DIGEST} is not set")
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        digest = base64.b64decode(padded, altchars=b"-_", validate=True)
    except (UnicodeError, binascii.Error):
        digest = b""
    if len(digest) != _DIGEST_BYTES:
        raise BadSettings(f"{names.ENV_HARNESS_TOKEN_DIGEST} is no base64url of a SHA-256")
    return digest
