"""What the Orchestrator asks of an Effector, and what it answers: signed, both by one key.

The key is that of the placement (`signed.effector_key`), which an Agent cannot read. A request is
signed over its id, time, nonce, method, path and body, and is worth something for five minutes. An
answer is signed over the id and the nonce that it answers, its status and its body, so that nobody
who took the port can answer for the Effector, and no old answer answers anew.

Source: spec/runtime.md §4.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

WINDOW: Final = 300
"""Seconds by which the time of a request may differ from the clock of who reads it."""
HEADER_ID: Final = "jr2-effect-id"
HEADER_TIME: Final = "jr2-timestamp"
HEADER_NONCE: Final = "jr2-nonce"
HEADER_SIGNATURE: Final = "jr2-signature"
_VERSION: Final = "v1="
_ID: Final = re.compile(r"[\x21-\x7e]{1,512}")
_TIME: Final = re.compile(r"[0-9]{1,12}")
_NONCE: Final = re.compile(r"[A-Za-z0-9_-]{22,128}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, as it went over the wire.

    Args:
        method: such as `POST`.
        path: with its query, as it was sent.
        headers: their names in lower case.
        body: its bytes.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


def request_headers(
    key: bytes, *, id: str, time: int, nonce: str, method: str, path: str, body: bytes
) -> dict[str, str]:
    """Return the headers that sign a request.

    Args:
        key: of the placement.
        id: of the Effect; a repeat of it has the same one.
        time: seconds since 1970.
        nonce: at least 16 random bytes, as base64url.
        method: such as `POST`.
        path: with its query, as it is sent.
        body: its bytes.
    """
    said = ["req", id, str(time), nonce, method, path, hashlib.sha256(body).hexdigest()]
    return {
        HEADER_ID: id,
        HEADER_TIME: str(time),
        HEADER_NONCE: nonce,
        HEADER_SIGNATURE: _VERSION + _sign(key, said),
    }


def is_complete(headers: Mapping[str, str]) -> bool:
    """Whether a request has every header of a signature, each in its form."""
    return (
        _ID.fullmatch(headers.get(HEADER_ID, "")) is not None
        and _TIME.fullmatch(headers.get(HEADER_TIME, "")) is not None
        and _NONCE.fullmatch(headers.get(HEADER_NONCE, "")) is not None
        and headers.get(HEADER_SIGNATURE, "").startswith(_VERSION)
    )


def is_asked(key: bytes, asked: Asked, *, now: float) -> bool:
    """Whether the holder of the key made a request, and made it now.

    Args:
        key: of the placement.
        asked: the request.
        now: seconds since 1970.
    """
    headers = asked.headers
    if not is_complete(headers):
        return False
    wanted = request_headers(
        key,
        id=headers[HEADER_ID],
        time=int(headers[HEADER_TIME]),
        nonce=headers[HEADER_NONCE],
        method=asked.method,
        path=asked.path,
        body=asked.body,
    )
    same = hmac.compare_digest(
        wanted[HEADER_SIGNATURE].encode(),
        headers[HEADER_SIGNATURE].encode("utf-8", "surrogateescape"),
    )
    return same and abs(now - int(headers[HEADER_TIME])) <= WINDOW


def answer_headers(key: bytes, asked: Asked, *, status: int, body: bytes) -> dict[str, str]:
    """Return the headers that sign the answer to a request that was asked so."""
    id_, nonce = asked.headers[HEADER_ID], asked.headers[HEADER_NONCE]
    said = ["res", id_, nonce, str(status), hashlib.sha256(body).hexdigest()]
    return {HEADER_SIGNATURE: _VERSION + _sign(key, said)}


def is_answer(
    key: bytes, asked: Asked, *, status: int, headers: Mapping[str, str], body: bytes
) -> bool:
    """Whether an answer is the Effector's, and to this request."""
    wanted = answer_headers(key, asked, status=status, body=body)[HEADER_SIGNATURE]
    given = headers.get(HEADER_SIGNATURE, "").encode("utf-8", "surrogateescape")
    return hmac.compare_digest(wanted.encode(), given)


def _sign(key: bytes, lines: list[str]) -> str:
    digest = hmac.new(key, "\n".join(lines).encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
