"""Send blobs to the Orchestrator: large ones alone, small ones together, a few at a time.

What is sent is packed with gzip. A file that is no longer what was staged is not sent.

Source: design §5.5, ADR-0118.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import httpx2

from jr2 import bundles
from jr2.errors import StepFailed

ALONE: Final = 256 * 2**10
"""Bytes from which a blob has a request of its own."""
BUNDLE: Final = 2 * 2**20
"""Bytes of the blobs of one bundle, unpacked; what is cut costs no more than that."""
AT_ONCE: Final = 4
"""Requests in flight."""
_CHUNK: Final = 256 * 2**10
_LEVEL: Final = 1
_GZIP: Final = 31


class BlobRefused(Exception):
    """The Orchestrator did not take a request with blobs.

    Args:
        response: its answer.
    """

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__(str(response.status_code))
        self.response = response


def send_blobs(
    client: httpx2.Client,
    sizes: Mapping[str, int],
    sources: Mapping[str, Path],
    progress: Callable[[int, int], None],
) -> None:
    """Send blobs; returns when each is on the Orchestrator's disk.

    Args:
        client: speaks to the Orchestrator, with the token; used from several threads.
        sizes: the bytes of each blob to send, by its digest.
        sources: where the bytes are.
        progress: told how many bytes of how many were sent.

    Raises:
        StepFailed: a file is no longer what was staged, or is not there.
        BlobRefused: the Orchestrator did not take one.
        httpx2.HTTPError: the connection broke; what was sent before is kept.
    """
    total, sent = sum(sizes.values()), 0

    def send(digests: Sequence[str]) -> int:
        if len(digests) == 1 and sizes[digests[0]] >= ALONE:
            method, path = "PUT", f"/blobs/{digests[0]}"
            content: bytes | Iterator[bytes] = _packed(sources[digests[0]])
        else:
            method, path = "POST", "/blobs"
            content = _bundle(digests, sources)
        response = client.request(
            method,
            path,
            content=content,
            headers={"Content-Encoding": "gzip", "Content-Type": "application/octet-stream"},
        )
        if response.status_code == 400 and len(digests) == 1:
            # The digest is checked where the bytes arrive; this says whose fault it is.
            _check(digests[0], sources[digests[0]])
        if not response.is_success:
            raise BlobRefused(response)
        return sum(sizes[digest] for digest in digests)

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        sending = [pool.submit(send, digests) for digests in parts(sizes)]
        try:
            for done in concurrent.futures.as_completed(sending):
                sent += done.result()
                progress(sent, total)
        finally:
            for each in sending:
                each.cancel()


def parts(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield which digests go into one request: the large alone, then the small together."""
    small: list[str] = []
    held = 0
    for digest, size in sizes.items():
        if size >= ALONE:
            yield [digest]
            continue
        if small and held + size + bundles.LONGEST_LINE > BUNDLE:
            yield small
            small, held = [], 0
        small.append(digest)
        held += size + bundles.LONGEST_LINE
    if small:
        yield small


def _bundle(digests: Sequence[str], sources: Mapping[str, Path]) -> bytes:
    packing = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    packed = bytearray()
    for digest in digests:
        try:
            content = sources[digest].read_bytes()
        except OSError as failed:
            raise _changed(sources[digest]) from failed
        if hashlib.sha256(content).hexdigest() != digest:
            raise _changed(sources[digest])
        packed += packing.compress(bundles.encode(digest, content))
    return bytes(packed + packing.flush())


def _packed(source: Path) -> Iterator[bytes]:
    packing = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    try:
        with source.open("rb") as file:
            while chunk := file.read(_CHUNK):
                if packed := packing.compress(chunk):
                    yield packed
    except OSError as failed:
        raise _changed(source) from failed
    yield packing.flush()


def _check(digest: str, source: Path) -> None:
    with source.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != digest:
            raise _changed(source)


def _changed(source: Path) -> StepFailed:
    return StepFailed(
        f"{source} was changed while `jr2 up` ran, so the Assembly that was checked cannot be "
        "published — the previous Assembly is still current. Run `jr2 up` again"
    )
