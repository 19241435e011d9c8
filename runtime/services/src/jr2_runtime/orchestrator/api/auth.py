"""Who asks: nobody that we know, the Instance, whoever may publish, or the Custodian of a pod.

The Orchestrator holds digests of the tokens, never a token; the token of a pod is a name that its
signing key has signed. A band names the principals that it opens to; another known one gets 403, an
unknown one 401.

Source: spec/runtime.md §1.2 and §1.3.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from fastapi import Request

from jr2 import names, signed

from .errors import ApiError

Principal = Literal["instance", "publisher", "sandbox"]
"""The Instance, whoever may publish, or the Custodian of a pod."""
_DIGEST = re.compile(r"[0-9a-f]{64}")


class BadValues(Exception):
    """A file of the Orchestrator's own Secret is missing or is not what it should be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """The Orchestrator's own values: SHA-256 of each token as hex, and the signing key."""

    instance: str = field(repr=False)
    publisher: str = field(repr=False)
    signing_key: bytes = field(repr=False)


def read_values(folder: Path) -> Values:
    """Read the values from the mounted Secret.

    Raises:
        BadValues: names the file; its content is never shown.
    """

    def read(name: str) -> str:
        try:
            return (folder / name).read_text("ascii").strip()
        except (OSError, UnicodeError) as failed:
            raise BadValues(f"{folder / name} cannot be read") from failed

    def digest(name: str) -> str:
        text = read(name).lower()
        if not _DIGEST.fullmatch(text):
            raise BadValues(f"{folder / name} is not a SHA-256 in hex")
        return text

    try:
        key = signed.read_key(read(names.FILE_SIGNING_KEY))
    except signed.BadKey as bad:
        raise BadValues(f"{folder / names.FILE_SIGNING_KEY}: {bad}") from bad
    return Values(
        instance=digest(names.FILE_INSTANCE_TOKEN_DIGEST),
        publisher=digest(names.FILE_PUBLISH_TOKEN_DIGEST),
        signing_key=key,
    )


def _token(header: str | None) -> str | None:
    """Return the bearer token of an `Authorization` header."""
    scheme, _, token = (header or "").strip().partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token else None


def principal(header: str | None, values: Values) -> Principal | None:
    """Return who sent an `Authorization` header; the comparison takes the same time for all."""
    token = _token(header)
    if token is None:
        return None
    given = hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
    is_instance = hmac.compare_digest(given, values.instance)
    is_publisher = hmac.compare_digest(given, values.publisher)
    if is_instance:
        return "instance"
    if is_publisher:
        return "publisher"
    return "sandbox" if signed.sandbox_of(values.signing_key, token) else None


def sandbox_name(header: str | None, values: Values) -> str | None:
    """Return the pod whose token an `Authorization` header has; `None` when it is no pod's."""
    token = _token(header)
    return None if token is None else signed.sandbox_of(values.signing_key, token)


class _Holds(Protocol):
    @property
    def values(self) -> Values: ...


def require(wanted: Sequence[Principal], services: _Holds) -> Callable[[Request], Awaitable[None]]:
    """Return the check of a band that opens to some principals."""

    # A coroutine, for FastAPI would hand a plain function to a thread.
    async def check(request: Request) -> None:
        who = principal(request.headers.get("authorization"), services.values)
        if who is None:
            raise ApiError(401, "unauthorized")
        if who not in wanted:
            raise ApiError(403, f"this token does not open {request.url.path}")

    return check
