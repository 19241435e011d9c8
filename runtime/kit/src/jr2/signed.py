"""What the Instance's signing key signs; each use has a prefix of its own.

A signature is HMAC-SHA256, as base64url without padding. The name of a pod is a DNS label and has
no `:`, so no signature of one use is ever one of another. Signed names need no table: a key gives
the same token again, and a program that started again knows the tokens of before.

Source: spec/runtime.md §1.2, design §6.3, ADR-0141.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import Final

SHORTEST_KEY: Final = 32
"""Bytes that a signing key has at least."""
_HARNESS: Final = "harness:"
_EFFECTOR: Final = "effector:"
_HEALTH: Final = "healthz:"
_NONCE: Final = re.compile(r"[A-Za-z0-9_-]{16,128}")
_POD: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


class BadKey(ValueError):
    """The text is no signing key; the text is not shown."""


def read_key(text: str) -> bytes:
    """Return the bytes of a signing key.

    Args:
        text: base64url, with or without padding.

    Raises:
        BadKey: it is no base64url, or shorter than 32 bytes.
    """
    plain = text.strip()
    try:
        padded = plain.encode("ascii") + b"=" * (-len(plain) % 4)
        key = base64.b64decode(padded, altchars=b"-_", validate=True)
    except (UnicodeError, binascii.Error) as bad:
        raise BadKey("it is no base64url") from bad
    if len(key) < SHORTEST_KEY:
        raise BadKey(f"it has fewer than {SHORTEST_KEY} bytes")
    return key


def sandbox_token(key: bytes, pod: str) -> str:
    """Return the token of a pod's Custodian."""
    return f"{pod}.{_sign(key, pod)}"


def sandbox_of(key: bytes, token: str) -> str | None:
    """Return the pod whose token it is; `None` when it is nobody's."""
    pod, _, given = token.rpartition(".")
    if not _POD.fullmatch(pod):
        return None
    given_bytes = given.encode("utf-8", "surrogateescape")
    return pod if hmac.compare_digest(_sign(key, pod).encode(), given_bytes) else None


def harness_bearer(key: bytes, placement: str) -> str:
    """Return the bearer that opens the Harness of a placement."""
    return _sign(key, _HARNESS + placement)


def bearer_digest(bearer: str) -> str:
    """Return what a Harness is told of its bearer: the SHA-256 of it, as base64url."""
    digest = hashlib.sha256(bearer.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def effector_key(key: bytes, placement: str) -> str:
    """Return the key that the Effector of a placement shares with the Orchestrator, as base64url."""
    return _sign(key, _EFFECTOR + placement)


def is_nonce(text: str) -> bool:
    """Whether a text may be signed as a nonce: 16 to 128 of letters, digits, `-` and `_`."""
    return _NONCE.fullmatch(text) is not None


def proof(key: bytes, nonce: str) -> str:
    """Return what shows to whoever sent a nonce that the answer comes from the Instance."""
    return _sign(key, _HEALTH + nonce)


def is_proof(key: bytes, nonce: str, given: str) -> bool:
    """Whether a proof is that of a nonce; it takes the same time for every text."""
    return hmac.compare_digest(proof(key, nonce).encode(), given.encode())


def _sign(key: bytes, what: str) -> str:
    digest = hmac.new(key, what.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
