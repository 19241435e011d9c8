"""A write with `Idempotency-Key` is done once, however often its sender asks.

What a request does, its key and its answer are one transaction (`store.answers`), so nothing is
looked up before it is done: a repeat fails in that transaction, or is refused as a second event
would be, and only then the former answer is looked for.

Source: design §4.3.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable
from typing import Final

from fastapi import Request
from starlette.responses import Response

from jr2 import names

from ..assemblies.publish import PublishError
from ..engine import EventRefused
from ..store import Answer, Once, OtherRequest, Repeated, Store, StoreError, answers
from .errors import ApiError

LONGEST_KEY: Final = 255
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


def read_once(request: Request, body: bytes) -> Once | None:
    """Return the key of a request with its fingerprint; `None` when it carries none.

    Args:
        request: its method, its path and `If-Gate` are part of the fingerprint.
        body: as it came; empty where the path names the content by its hash.

    Raises:
        ApiError: 400, the key is not one.
    """
    given = request.headers.getlist(names.HEADER_IDEMPOTENCY_KEY)
    if not given:
        return None
    if len(given) > 1 or not _KEY.fullmatch(given[0]):
        raise ApiError(
            400,
            f"{names.HEADER_IDEMPOTENCY_KEY} is one text of 1 to {LONGEST_KEY} visible ASCII "
            "characters",
        )
    raw_path: bytes = request.scope.get("raw_path") or request.url.path.encode()
    digest = hashlib.sha256()
    for part in (
        request.method.encode(),
        raw_path.split(b"?")[0],
        request.headers.get(names.HEADER_IF_GATE, "").encode("latin-1"),
        body,
    ):
        digest.update(len(part).to_bytes(8, "big") + part)
    return Once(key=given[0], fingerprint=digest.hexdigest())


async def answer_once(
    store: Store, once: Once | None, act: Callable[[], Awaitable[Answer]]
) -> Response:
    """Do what a request asks for, or return the answer that it was given before.

    Raises:
        ApiError: 422, the key is that of another request.
        Exception: what `act` raised, when the key is new.
    """
    try:
        return _response(await act())
    except OtherRequest as other:
        raise _other() from other
    except (ApiError, EventRefused, PublishError, Repeated, StoreError):
        if once is None:
            raise
        try:
            former = await store.read(lambda db: answers.find(db, once))
        except OtherRequest as other:
            raise _other() from other
        if former is None:
            raise
        return _response(former)


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.code, media_type="application/json")


def _other() -> ApiError:
    return ApiError(
        422,
        f"this {names.HEADER_IDEMPOTENCY_KEY} was used for another request; "
        "a new request takes a new key",
    )
