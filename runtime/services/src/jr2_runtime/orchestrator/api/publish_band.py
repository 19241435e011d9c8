"""The publish band: what the publish token opens, and nothing else.

Source: spec/runtime.md §1.13, design §5.5.
"""

from __future__ import annotations

import re
from typing import Final

from fastapi import APIRouter, Depends, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from jr2 import names
from jr2.wire import LeaseStamp, Published

from ..store import Answer
from .auth import require
from .bodies import content_length
from .errors import ApiError
from .once import answer_once, read_once
from .services import Services

_HASH: Final = re.compile(r"[0-9a-f]{64}")


def publish_band(services: Services) -> APIRouter:
    """What the publish token opens, and nothing else."""
    router = APIRouter(dependencies=[Depends(require("publisher", services.values))])

    @router.put("/assemblies/{hash_}", status_code=201, response_model=Published)
    async def publish(hash_: str, request: Request) -> Response:
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
