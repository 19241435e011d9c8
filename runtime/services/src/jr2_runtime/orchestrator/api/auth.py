"""Who asks: nobody that we know, the Instance, or whoever may publish.

The Orchestrator holds digests of the tokens, never a token. A band names the one principal that it
opens to; another known one gets 403, an unknown one 401.

Source: spec/runtime.md §1.2 and §1.3.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from fastapi import Request

from jr2 import names

from .errors import ApiError

Principal = Literal["instance", "publisher"]
_DIGEST = re.compile(r"[0-9a-f]{64}")


class BadValues(Exception):
    """A file of the Orchestrator's own Secret is missing or is not what it should be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digests:
    """SHA-256 of each token, as hex."""

    instance: str = field(repr=False)
    publisher: str = field(repr=False)


def read_digests(folder: Path) -> Digests:
    """Read the digests from the mounted Secret.

    Raises:
        BadValues: names the file; its content is never shown.
    """

    def digest(name: str) -> str:
        try:
            text = (folder / name).read_text("ascii").strip().lower()
        except (OSError, UnicodeError) as failed:
            raise BadValues(f"{folder / name} cannot be read") from failed
        if not _DIGEST.fullmatch(text):
            raise BadValues(f"{folder / name} is not a SHA-256 in hex")
        return text

    return Digests(
        instance=digest(names.FILE_INSTANCE_TOKEN_DIGEST),
        publisher=digest(names.FILE_PUBLISH_TOKEN_DIGEST),
    )


def principal(header: str | None, digests: Digests) -> Principal | None:
    """Return who sent an `Authorization` header; the comparison takes the same time for all."""
    scheme, _, token = (header or "").strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        return None
    given = hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
    is_instance = hmac.compare_digest(given, digests.instance)
    is_publisher = hmac.compare_digest(given, digests.publisher)
    if is_instance:
        return "instance"
    return "publisher" if is_publisher else None


def require(wanted: Principal, digests: Digests) -> Callable[[Request], None]:
    """Return the check of a band that opens to one principal."""

    def check(request: Request) -> None:
        who = principal(request.headers.get("authorization"), digests)
        if who is None:
            raise ApiError(401, "unauthorized")
        if who != wanted:
            raise ApiError(403, f"this token does not open {request.url.path}")

    return check
