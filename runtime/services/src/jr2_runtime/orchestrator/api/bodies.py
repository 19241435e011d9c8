"""Read a request's body: capped, and leniently as JSON.

Source: spec/runtime.md §1.4.
"""

from __future__ import annotations

import json
from typing import Any, Final

from fastapi import Request
from starlette.requests import ClientDisconnect

from jr2 import names

from .errors import ApiError


async def read_body(request: Request, largest: int = names.MAX_EVENT) -> bytes:
    """Return the body.

    Raises:
        ApiError: 413, the body is too large; 400, the sender went away.
    """
    length = content_length(request)
    if length is not None and length > largest:
        raise ApiError(413, f"the body is larger than {largest} bytes")
    received = bytearray()
    try:
        async for chunk in request.stream():
            received += chunk
            if len(received) > largest:
                raise ApiError(413, f"the body is larger than {largest} bytes")
    except ClientDisconnect as gone:
        raise ApiError(400, "the body was cut") from gone
    return bytes(received)


def as_object(body: bytes) -> dict[str, Any]:
    """Return a body as an object; an empty one, malformed JSON and a non-object give `{}`."""
    try:
        given = _DECODER.decode(body.decode(json.detect_encoding(body), "surrogatepass"))
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)
"""Made once: `json.loads` with an argument makes one for each body."""


def content_length(request: Request) -> int | None:
    """Return the length that the sender said, when it is a number."""
    text = request.headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None
