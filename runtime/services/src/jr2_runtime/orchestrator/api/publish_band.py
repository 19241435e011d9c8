"""The publish band: what the publish token opens, and nothing else.

A publish is four kinds of requests: the files of the Assembly that the sender starts from, what is
missing, the blobs, and the commit. A blob is named by its digest and a question changes nothing, so
only the commit takes `Idempotency-Key`.

Source: spec/runtime.md §1.13, design §5.5, ADR-0118.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from jr2 import names
from jr2.wire import AssemblyFiles, AssemblyListing, LeaseStamp, MissingBlobs, Published, Taken

from ..assemblies.receiving import Encoding
from ..store import Answer
from .auth import require
from .bodies import content_length
from .described import PAGE, SENT, described, header
from .errors import ApiError, answer, shape
from .once import answer_once, read_once
from .services import Services

_HASH: Final = re.compile(r"[0-9a-f]{64}")
_LISTING: Final = {
    "required": True,
    "description": "The path, kind, SHA-256 and size of each file, and the target of each symlink. "
    "With `base`, the hash of a held Assembly, only what differs from that.",
    "content": {"application/json": {"schema": SENT}},
}
_LEASE: Final = header(
    names.HEADER_LEASE,
    "When the Lease `jr2-converge` was taken, and its nonce; whoever held it before another one "
    "published is refused.",
    required=True,
    pattern="^[!-~]+ [A-Za-z0-9_-]+$",
)
_VERSION: Final = header(
    names.HEADER_KIT_VERSION,
    "The Kit version of the sender; the manifest says it too.",
    pattern="^[!-~]+$",
)
_ENCODING: Final = header(
    "Content-Encoding", "`gzip` when the body is packed so.", pattern="^gzip$"
)
_REFUSED: Final = {
    400: "no Lease or no valid one; the hash is not 64 hex digits; the body is no list of the files "
    "of an Assembly",
    408: "the body did not come within 30 seconds",
    409: "it is for another Kit version; a later converge has taken the Lease over",
    413: "more than 20 000 files, 1 GiB, or a list of 8 MiB",
    415: "another `Content-Encoding` than `gzip`",
    503: "too much is under way",
    507: "the volume has no room",
}
_BLOBS: Final = {
    400: "the bytes are not those of the digest; the body is cut, or is not packed as it says",
    403: PAGE,
    408: "the next piece did not come within 30 seconds, or less than 4 KiB came in a second",
    413: "the body is too large",
    415: "another `Content-Encoding` than `gzip`",
    503: "as many bodies are received as may be at one time",
    507: "the volume has no room",
}
_BYTES: Final = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


def publish_band(services: Services) -> APIRouter:
    """What the publish token opens, and nothing else."""
    router = APIRouter(dependencies=[Depends(require(("publisher",), services))])

    @router.get(
        "/assemblies/{hash}/files",
        response_model=AssemblyFiles,
        **described(
            "publish",
            "each file with its digest",
            {400: "the hash is not 64 hex digits", 404: "no list of that Assembly is held"},
        ),
    )
    async def files(hash_: Annotated[str, Path(alias="hash")]) -> Response:
        """List the files of a held Assembly, so that a publish need name only what differs."""
        _check_hash(hash_)
        return Response(await services.publisher.files(hash_), media_type="application/json")

    @router.post(
        "/assemblies/{hash}/missing",
        response_model=MissingBlobs,
        **described(
            "publish",
            "the digests that are not held; those that are held stay for an hour at least",
            {**_REFUSED, 403: PAGE, 412: "the base is not held: send the whole list"},
            headers=[_LEASE, _VERSION, _ENCODING],
            body=_LISTING,
        ),
    )
    async def missing(hash_: Annotated[str, Path(alias="hash")], request: Request) -> Response:
        """Ask which blobs of an Assembly are missing; what could not be published is refused."""
        stamp = _checked(hash_, request)
        listing = await _listing(request)
        found = await services.publisher.missing(hash_, listing, stamp)
        return shape(MissingBlobs(missing=found))

    @router.post(
        "/blobs",
        response_model=Taken,
        **described(
            "publish",
            "each is on the disk",
            _BLOBS,
            headers=[_ENCODING],
            body={
                "required": True,
                "description": "Blobs one after the other, before each a line with its digest, a "
                "space, its length in bytes, and a line feed; 8 MiB unpacked at most. When it is "
                "cut, what came whole is kept.",
                "content": _BYTES,
            },
        ),
    )
    async def bundle(request: Request) -> Response:
        """Send several blobs."""
        return await _receive(None, request)

    @router.put(
        "/blobs/{sha256}",
        response_model=Taken,
        **described(
            "publish",
            "it is on the disk",
            {**_BLOBS, 400: f"the name is not 64 hex digits; {_BLOBS[400]}"},
            headers=[_ENCODING],
            body={"required": True, "description": "The bytes, 1 GiB at most.", "content": _BYTES},
        ),
    )
    async def blob(sha256: str, request: Request) -> Response:
        """Send one blob, which is named by its digest."""
        if not _HASH.fullmatch(sha256):
            raise ApiError(400, "a blob is named by 64 hex digits")
        return await _receive(sha256, request)

    @router.put(
        "/assemblies/{hash}",
        response_model=Published,
        **described(
            "publish",
            "it is current now",
            {
                **_REFUSED,
                400: f"{_REFUSED[400]}; the content has another hash",
                412: "the base or a blob is not held: ask again what is missing",
                422: "it does not load, or it does not pass the checks: `problems` has one text "
                "for each",
                503: f"the worker is away; {_REFUSED[503]}",
            },
            code=201,
            more={200: "it was current already; the list was not looked at"},
            writes=True,
            headers=[_LEASE, _VERSION, _ENCODING],
            body=_LISTING,
        ),
    )
    async def publish(hash_: Annotated[str, Path(alias="hash")], request: Request) -> Response:
        """Make an Assembly current whose blobs are held: 201 it is now, 200 it was already."""
        stamp = _checked(hash_, request)
        # The path names the content by its hash, so the body is no part of the key.
        once = read_once(request, b"")
        listing = await _listing(request)

        async def act() -> Answer:
            return await services.publisher.publish(hash_, listing, stamp, once)

        return await answer_once(services.store, once, act)

    def _checked(hash_: str, request: Request) -> LeaseStamp:
        """Check what is known before the body is read."""
        _check_hash(hash_)
        version = request.headers.get(names.HEADER_KIT_VERSION)
        if version is not None and version != services.registry.kit_version:
            raise ApiError(
                409,
                f"it is for Kit version {version} and this Orchestrator is "
                f"{services.registry.kit_version} (ADR-0056)",
            )
        return _stamp(request)

    async def _listing(request: Request) -> AssemblyListing:
        encoding = _encoding(request)
        async with services.bodies.of(request, names.MAX_ASSEMBLY_LISTING) as body:
            return await services.publisher.read(body, encoding)

    async def _receive(digest: str | None, request: Request) -> Response:
        try:
            await services.publisher.receive(
                digest, request.stream(), content_length(request), _encoding(request)
            )
        except ClientDisconnect as gone:
            raise ApiError(400, "the body was cut") from gone
        return answer({"ok": True})

    return router


def _encoding(request: Request) -> Encoding:
    match request.headers.get("content-encoding", ""):
        case "" | "identity":
            return ""
        case "gzip":
            return "gzip"
        case _:
            raise ApiError(415, "a body is plain or packed with gzip")


def _check_hash(hash_: str) -> None:
    if not _HASH.fullmatch(hash_):
        raise ApiError(400, "an Assembly is named by 64 hex digits")


def _stamp(request: Request) -> LeaseStamp:
    text = request.headers.get(names.HEADER_LEASE)
    if text is None:
        raise ApiError(400, f"a publish carries the converge Lease ({names.HEADER_LEASE})")
    try:
        return LeaseStamp.parse(text)
    except ValueError as bad:
        raise ApiError(400, f"{names.HEADER_LEASE}: {bad}") from bad
