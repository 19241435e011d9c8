"""The framing between the Orchestrator and an Assembly process: one header, one opaque body.

A frame is two big-endian unsigned 32-bit lengths, then a JSON object (the header), then bytes (the
body). The body is a Run's snapshot: the Orchestrator stores it and hands it back, and never parses
it. A frame that is longer than its limit ends the connection, for the peer is not trusted.

Source: design §4.4.
"""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any, Final

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_LENGTHS: Final = struct.Struct(">II")
MAX_HEADER: Final = 8 * 2**20
MAX_BODY: Final = 4 * 2**20


class FrameError(Exception):
    """The peer sent something that is not a frame; the connection is of no more use."""


def encode(header: dict[str, Any], body: bytes = b"") -> bytes:
    """Return one frame as bytes.

    Raises:
        FrameError: header or body is longer than its limit.
    """
    return frame(_encode(header).encode(), body)


def frame(head: bytes, body: bytes = b"") -> bytes:
    """Return one frame whose header is JSON text already.

    Raises:
        FrameError: header or body is longer than its limit.
    """
    head_length, body_length = len(head), len(body)
    if head_length > MAX_HEADER or body_length > MAX_BODY:
        raise FrameError(f"a frame of {head_length} + {body_length} bytes is over the limit")
    return _LENGTHS.pack(head_length, body_length) + head + body


async def read(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes] | None:
    """Read one frame; `None` when the peer closed between two frames.

    Raises:
        FrameError: the peer closed inside a frame, or sent a length over the limit or no object.
    """
    try:
        lengths = await reader.readexactly(_LENGTHS.size)
    except asyncio.IncompleteReadError as cut:
        if not cut.partial:
            return None
        raise FrameError("the peer closed inside a frame") from cut
    head_length, body_length = _lengths(lengths)
    try:
        head = await reader.readexactly(head_length)
        body = await reader.readexactly(body_length)
    except asyncio.IncompleteReadError as cut:
        raise FrameError("the peer closed inside a frame") from cut
    return header(head), body


class Splitter:
    """Finds the frames in what a stream gives, in pieces of any length."""

    def __init__(self) -> None:
        self._data = bytearray()

    @property
    def within(self) -> bool:
        """Whether a frame has begun and has not ended."""
        return bool(self._data)

    def feed(self, data: bytes | memoryview) -> list[tuple[bytes, bytes]]:
        """Return the frames that are complete now: for each its header as JSON text, and its body.

        Raises:
            FrameError: a length is over its limit.
        """
        self._data += data
        found: list[tuple[bytes, bytes]] = []
        at, end = 0, len(self._data)
        # A view, for a slice of the data would be copied once more.
        with memoryview(self._data) as whole:
            while end - at >= _LENGTHS.size:
                head, body = _lengths(whole, at)
                start = at + _LENGTHS.size
                middle = start + head
                if end - middle < body:
                    break
                at = middle + body
                found.append((bytes(whole[start:middle]), bytes(whole[middle:at])))
        del self._data[:at]
        return found


def _lengths(data: bytes | memoryview, at: int = 0) -> tuple[int, int]:
    head_length, body_length = _LENGTHS.unpack_from(data, at)
    if head_length > MAX_HEADER or body_length > MAX_BODY:
        raise FrameError(f"a frame of {head_length} + {body_length} bytes is over the limit")
    return head_length, body_length


def header(head: bytes) -> dict[str, Any]:
    """Return a header as data.

    Raises:
        FrameError: it is no JSON object.
    """
    try:
        read = json.loads(head)
    except ValueError as bad:
        raise FrameError("a frame's header is not JSON") from bad
    if not isinstance(read, dict):
        raise FrameError("a frame's header is not an object")
    return read
