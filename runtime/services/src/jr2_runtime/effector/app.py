"""The routes of the Effector: each request is one that the Orchestrator signed, each answer is signed.

The signature binds what is asked to its time, so an old request is worth nothing. Whoever has no
key gets a 401 that nobody signed, and the Orchestrator drops an answer without a signature.

Source: spec/runtime.md §4.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jr2 import signed_effects
from jr2.signed_effects import Asked

from ..serving import answers
from .settings import Settings

NO_EFFECTS: Final = "this Effector runs no Effects yet"
LONGEST_BODY: Final = 2 * 2**20
"""Bytes of a request: an Effect's input has at most a quarter of a MiB, and JSON around it."""

Answer = Callable[[Request, bytes], Awaitable[Response]]


def build_app(settings: Settings, clock: Callable[[], float] = time.time) -> Starlette:
    """Return the app of one Effector.

    Args:
        settings: what the pod says.
        clock: seconds since 1970.
    """

    def guarded(answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            # Before a body is read: a stranger sends none of any length.
            if not signed_effects.is_complete(request.headers):
                return answers.error(401, "unauthorized")
            body = await _body(request)
            if body is None:
                return answers.error(413, f"a request has at most {LONGEST_BODY} bytes")
            asked = Asked(
                method=request.method, path=_path(request), headers=request.headers, body=body
            )
            if not signed_effects.is_asked(settings.key, asked, now=clock()):
                return answers.error(401, "unauthorized")
            given = await answer(request, body)
            given.headers.update(
                signed_effects.answer_headers(
                    settings.key, asked, status=given.status_code, body=bytes(given.body)
                )
            )
            return given

        return handle

    async def run(request: Request, body: bytes) -> Response:
        return answers.error(501, NO_EFFECTS)

    async def look(request: Request, body: bytes) -> Response:
        return answers.error(404, "no such Effect")

    return Starlette(
        routes=[
            Route("/healthz", answers.healthy, methods=["GET"]),
            Route("/effects", guarded(run), methods=["POST"]),
            Route("/effects/{effect:path}", guarded(look), methods=["GET"]),
        ],
        exception_handlers=dict(answers.HANDLERS),
    )


def _path(request: Request) -> str:
    """Return the path and the query as they were sent."""
    query = request.scope["query_string"].decode("latin-1")
    path = request.scope["raw_path"].decode("latin-1")
    return f"{path}?{query}" if query else path


async def _body(request: Request) -> bytes | None:
    """Return the body; `None` when it is too long, of which no more is read."""
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > LONGEST_BODY:
            return None
    return bytes(found)
