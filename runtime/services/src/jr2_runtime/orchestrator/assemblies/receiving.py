"""Receive blobs: each is hashed while it streams, and counts once its bytes are on the disk.

A body carries one blob whose digest the path names, or a bundle of several (`jr2.bundles`), plain
or packed with gzip. What is not the content of its digest is refused. A bundle that is cut has
brought the blobs that came whole. A sender that pauses, or that sends too little for too long, is
not waited for.

Source: design §5.5, ADR-0118.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO, Final, Literal

from jr2 import bundles

from ..disk import sync, sync_volume
from .refused import PublishError, not_taken

LONGEST_PAUSE: Final = 30.0
"""Seconds in which the next piece of a body must come."""
SLOWEST: Final = 4 * 2**10
"""Bytes that a sender brings in a second at least, after the first pause."""
MOST: Final = 16
"""Bodies that are received at one time; a further one is told to come back."""
_CHUNK: Final = 1 << 20

Encoding = Literal["", "gzip"]


class Pace:
    """How long the next piece of a body is waited for; only waiting counts, not our own work.

    Args:
        pause: seconds before the first piece, and between two of them.
        slowest: bytes in a second that prolong the time for all.
    """

    def __init__(self, pause: float = LONGEST_PAUSE, slowest: int = SLOWEST) -> None:
        self._pause = pause
        self._slowest = slowest
        self._left = pause

    @property
    def seconds(self) -> float:
        """How long the next piece may take."""
        return min(self._pause, self._left)

    def came(self, size: int, after: float) -> None:
        """Count a piece of so many bytes, which took so many seconds to come."""
        self._left += size / self._slowest - after


async def in_time(pieces: AsyncIterator[bytes], pace: Pace | None = None) -> AsyncIterator[bytes]:
    """Yield the pieces of a body while they come in time.

    Raises:
        PublishError: 408, the next one did not come in time.
    """
    pace = pace or Pace()
    loop, iterator = asyncio.get_running_loop(), aiter(pieces)
    while True:
        began = loop.time()
        try:
            async with asyncio.timeout(pace.seconds):
                piece = await anext(iterator)
        except StopAsyncIteration:
            return
        except TimeoutError as late:
            raise PublishError(408, "the body came to a halt, or brought too little") from late
        pace.came(len(piece), loop.time() - began)
        yield piece


class Receiver:
    """Writes the blobs of one body into a folder; used from one thread at a time.

    Args:
        folder: an empty one of its own.
        digest: of the one blob that the body is; `None` when it is a bundle.
        encoding: how the body is packed.
        room: bytes that the volume has for it.
        largest: bytes of a blob, or of a whole bundle.
    """

    def __init__(
        self, folder: Path, *, digest: str | None, encoding: Encoding, room: int, largest: int
    ) -> None:
        self._folder = folder
        self._digest = digest
        self._unpack = zlib.decompressobj(31) if encoding == "gzip" else None
        self._room = room
        self._largest = largest
        self._taken = 0
        self._buffer = b""
        self._bundled, self._left = "", 0
        self._file: BinaryIO | None = None
        self._hash = hashlib.sha256()
        self.whole: list[tuple[str, Path]] = []
        """The blobs that came whole, by digest."""
        if digest is not None:
            self._open()

    def feed(self, data: bytes) -> None:
        """Take a piece of the body.

        Raises:
            PublishError: 400, 413 or 507.
        """
        try:
            if self._unpack is None:
                self._take(data)
                return
            while data:
                self._take(self._unpack.decompress(data, _CHUNK))
                data = self._unpack.unconsumed_tail
            if self._unpack.unused_data:
                raise PublishError(400, "something follows the end of the gzip body")
        except zlib.error as bad:
            raise PublishError(400, f"the body is no gzip: {bad}") from bad
        except OSError as failed:
            raise not_taken(failed) from failed

    def end(self) -> None:
        """Take the end of the body.

        Raises:
            PublishError: 400, it is cut, or not the content of its digest.
        """
        if self._unpack is not None and not self._unpack.eof:
            raise PublishError(400, "the body is cut")
        if self._digest is not None:
            self._close(self._digest)
        elif self._file is not None or self._buffer:
            raise PublishError(400, "the bundle is cut")

    def sync(self) -> list[tuple[str, Path]]:
        """Put what came whole on the disk, and return it.

        Raises:
            PublishError: 507, the disk did not take it.
        """
        try:
            if len(self.whole) == 1:
                sync(self.whole[0][1])
            elif self.whole:
                sync_volume(self._folder)
        except OSError as failed:
            raise not_taken(failed) from failed
        return self.whole

    def close(self) -> None:
        """Let go of what was not whole."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # what the disk did not take was said already
                self._file.close()
            self._file = None

    def _take(self, data: bytes) -> None:
        self._taken += len(data)
        if self._taken > self._largest:
            raise PublishError(413, f"the body is larger than {self._largest} bytes")
        if self._taken > self._room:
            raise PublishError(507, "the state volume has no room for it")
        if self._digest is not None:
            self._write(data)
            return
        view, at = self._buffer + data, 0
        while at < len(view):
            if self._file is not None:
                part = view[at : at + self._left]
                self._write(part)
                self._left -= len(part)
                at += len(part)
            else:
                found = self._line(view[at : at + bundles.LONGEST_LINE])
                if found is None:
                    break
                self._bundled, self._left, start = found
                at += start
                self._open()
            if self._left == 0:
                self._close(self._bundled)
        self._buffer = view[at:]

    def _line(self, text: bytes) -> tuple[str, int, int] | None:
        try:
            return bundles.split_line(text)
        except ValueError as bad:
            raise PublishError(400, str(bad)) from bad

    def _open(self) -> None:
        place = self._folder / str(len(self.whole))
        self._file = place.open("xb", buffering=0)
        self._hash = hashlib.sha256()

    def _write(self, data: bytes) -> None:
        assert self._file is not None  # one is open while its bytes are read
        self._hash.update(data)
        left = memoryview(data)
        while left:  # an unbuffered file may take a part of it at a time
            left = left[self._file.write(left) :]

    def _close(self, digest: str) -> None:
        assert self._file is not None
        self._file.close()
        self._file = None
        actual = self._hash.hexdigest()
        if actual != digest:
            raise PublishError(400, f"the blob has the digest {actual[:12]}, not {digest[:12]}")
        self.whole.append((digest, self._folder / str(len(self.whole))))
