"""The publish band: what the publish token opens, and nothing else.

Source: spec/runtime.md §1.13, design §5.5.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from jr2 import names
from jr2.wire import LeaseStamp, Published

from ..store import Answer
from .auth import require
from .bodies import content_length
from .described import described, header
from .errors import ApiError
from .once import answer_once, read_once
from .services import Services

_HASH: Final = re.compile(r"[0-9a-f]{64}")


def publish_band(services: Services) -> APIRouter:
    """What the publish token opens, and nothing else."""
    router = APIRouter(dependencies=[Depends(require(("publisher",), services))])

    @router.put(
        "/assemblies/{hash}",
        response_model=Published,
        **described(
            "publish",
            "it is current now",
            {
                400: "no Lease or no valid one; the hash is not 64 hex digits; the content has "
                "another hash; the archive is cut, is no gzip tar, or holds a path that may not "
                "be there",
                409: "it is for another Kit version; a later converge has taken the Lease over; "
                "the Assembly was released just now",
                413: "more than 256 MiB packed, 1 GiB unpacked or 20 000 files",
                422: "it does not load, or it does not pass the checks: `problems` has one text "
                "for each",
                503: "the worker is away",
                507: "the volume has no room",
            },
            code=201,
            more={200: "it was current already; the archive was not read"},
            writes=True,
            headers=[
                header(
                    names.HEADER_LEASE,
                    "When the Lease `jr2-converge` was taken, and its nonce; whoever held it "
                    "before another one published is refused.",
                    required=True,
                    pattern="^[!-~]+ [A-Za-z0-9_-]+$",
                ),
                header(
                    names.HEADER_KIT_VERSION,
                    "The Kit version of the sender; the manifest says it too.",
                    pattern="^[!-~]+$",
                ),
            ],
            body={
                "description": "One gzip tar of `assembly.json`, `instance/` and `packages/`. A "
                "refused publish changes nothing, and leaves no file.",
                "content": {"application/gzip": {"schema": {"type": "string", "format": "binary"}}},
            },
        ),
    )
    async def publish(hash_: Annotated[str, Path(alias="hash")], request: Request) -> Response:
        """Publish an Assembly: 201 it is current now, 200 it was already."""
        if not _HASH.fullmatch(hash_):
            raise ApiError(400, "an Assembly is named by 64 hex digits")
        version = request.headers.get(names.HEADER_KIT_VERSION)
        if version is not None and version != services.registry.kit_version:
            raise ApiError(
                409,
                f"it is for Kit version {version} and this Orchestrator is "
                f"{services.registry.kit_version} (ADR-0056)",
            )
        # The path names the content by its hash, so the body need not be read for the key.
        once = read_once(request, b"")

        async def act() -> Answer:
            try:
                return await services.publisher.publish(
                    hash_, request.stream(), content_length(request), _stamp(request), once
                )
            except ClientDisconnect as gone:
                raise ApiError(400, "the archive was cut") from gone

        return await answer_once(services.store, once, act)

    return router


def _stamp(request: Request) -> LeaseStamp:
    text = request.headers.get(names.HEADER_LEASE)
    if text is None:
        raise ApiError(400, f"a publish carries the converge Lease ({names.HEADER_LEASE})")
    try:
        return LeaseStamp.parse(text)
    except ValueError as bad:
        raise ApiError(400, f"{names.HEADER_LEASE}: {bad}") from bad
