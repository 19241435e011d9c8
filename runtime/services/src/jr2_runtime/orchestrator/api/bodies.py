"""Read a request's body: capped, alone and with all others, in time, and leniently as JSON.

Source: spec/runtime.md §1.4, ADR-0152 and ADR-0156.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from typing import Any, Final

from fastapi import Request
from starlette.requests import ClientDisconnect

from jr2 import names

from .errors import ApiError

MOST_BYTES: Final = 32 * 2**20
"""Of all bodies that were sent and are not answered; a further one is told to come back."""
ALWAYS: Final = 4 * 2**10
"""Bytes of a body that is taken in any case, so that a run can always be cancelled."""
DEADLINE: Final = 30.0
"""Seconds in which a body must have come."""


class Bodies:
    """The bodies of requests that are under way, within a number of bytes.

    A body counts until its request is answered, for an event waits as its text. So however many
    senders there are, what waits fits the memory.

    Args:
        most: bytes of all of them together.
        deadline: seconds in which each must have come.
    """

    def __init__(self, most: int = MOST_BYTES, *, deadline: float = DEADLINE) -> None:
        self._most = most
        self._deadline = deadline
        self._held = 0

    @contextlib.asynccontextmanager
    async def of(self, request: Request, largest: int = names.MAX_EVENT) -> AsyncIterator[bytes]:
        """Read the body of a request, and count it for the length of the block.

        Raises:
            ApiError: 413, the body is too large; 408, it did not come in time; 400, the sender went
                away; 503, too much is under way.
        """
        length = content_length(request)
        if length is not None and length > largest:
            raise ApiError(413, f"the body is larger than {largest} bytes")
        received = bytearray()
        try:
            try:
                async with asyncio.timeout(self._deadline):
                    async for chunk in request.stream():
                        self._take(received, chunk)
                        if len(received) > largest:
                            raise ApiError(413, f"the body is larger than {largest} bytes")
            except ClientDisconnect as gone:
                raise ApiError(400, "the body was cut") from gone
            except TimeoutError as late:
                raise ApiError(408, f"the body did not come within {self._deadline:g} s") from late
            yield bytes(received)
        finally:
            self._held -= len(received)

    def _take(self, received: bytearray, chunk: bytes) -> None:
        size = len(received) + len(chunk)
        if size > ALWAYS and self._held + len(chunk) > self._most:
            raise ApiError(503, "the requests under way are too large; send it again later")
        self._held += len(chunk)
        received += chunk


def as_object(body: bytes) -> dict[str, Any]:
    """Return a body as an object; an empty one, malformed JSON and a non-object give `{}`.

    Raises:
        ApiError: 400, it is JSON with a value that no store and no other program would give back
            as it came. Such a value is never replaced by another one.
    """
    try:
        text = body.decode(json.detect_encoding(body), "surrogatepass")
        given = _DECODER.decode(text)
    except (json.JSONDecodeError, UnicodeError, _Constant):
        return {}
    except ValueError as long:
        raise ApiError(400, "the body holds an integer with too many digits") from long
    except RecursionError as deep:
        raise ApiError(400, "the body is nested too deeply") from deep
    if not isinstance(given, dict):
        return {}
    if _SUSPECT.search(text) is not None:
        _check(given)
    return given


def _check(given: dict[str, Any]) -> None:
    """Refuse a number that is not finite once it is read, and half of a surrogate pair."""
    try:
        _encode(given).encode()
    except UnicodeError as half:
        raise ApiError(400, "the body holds half of a surrogate pair, which is no text") from half
    except ValueError as infinite:
        raise ApiError(400, "the body holds a number that is too large") from infinite


class _Constant(ValueError):
    """`NaN` or an infinity by its name, which is no JSON."""


def _no_constant(name: str) -> None:
    raise _Constant(name)


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant)
"""Made once: `json.loads` with an argument makes one for each body."""
_SUSPECT: Final = re.compile(r"[\ud800-\udfff]|\\u[dD]|[eE]\+?[0-9]{3}|[0-9]{300}")
"""What a text has at least when it may hold a value that `_check` refuses; few texts have it."""
_encode: Final = json.JSONEncoder(allow_nan=False, ensure_ascii=False).encode


def content_length(request: Request) -> int | None:
    """Return the length that the sender said, when it is a number."""
    text = request.headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None
