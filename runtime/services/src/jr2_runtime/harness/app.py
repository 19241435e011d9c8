"""The routes of the Harness; all but the health check open to the bearer of this placement alone.

The bearer is checked before anything else, so that whoever lacks it learns no route and no
conversation. What this first form cannot do it refuses with 501; what it can say truly, such as
that it knows no conversation, it says as the full Harness does.

Source: spec/runtime.md §2.2.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ..serving import answers
from .settings import Settings

HEALTH: Final = "/healthz"
NO_TURNS: Final = "this Harness runs no Turns yet"
NO_WORKSPACE: Final = "this Harness is for Agents without a workspace"


class Gate:
    """Lets the holder of the bearer through, and everybody to the health check.

    Args:
        app: what is behind it.
        digest: the SHA-256 of the bearer.
    """

    def __init__(self, app: ASGIApp, digest: bytes) -> None:
        self._app = app
        self._digest = digest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401, or pass the request on."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        if scope["path"] == HEALTH or self._is_open_to(request.headers.get("authorization", "")):
            await self._app(scope, receive, send)
            return
        await answers.error(401, "unauthorized")(scope, receive, send)

    def _is_open_to(self, header: str) -> bool:
        scheme, _, token = header.strip().partition(" ")
        given = hashlib.sha256(token.strip().encode("utf-8", "surrogateescape")).digest()
        return hmac.compare_digest(given, self._digest) and scheme.lower() == "bearer"


def build_app(settings: Settings) -> Starlette:
    """Return the app of one Harness."""

    async def admit(request: Request) -> Response:
        return answers.error(501, NO_TURNS)

    async def read(request: Request) -> Response:
        return answers.error(404, "no such conversation")

    async def abort(request: Request) -> Response:
        return JSONResponse({"aborted": False})

    async def attach(request: Request) -> Response:
        if settings.menu_only:
            return answers.error(403, NO_WORKSPACE)
        return answers.error(501, "this Harness attaches no Repos yet")

    conversation = "/agents/{agent}/{conversation}"
    return Starlette(
        routes=[
            Route(HEALTH, answers.healthy, methods=["GET"]),
            Route(conversation, admit, methods=["POST"]),
            Route(conversation, read, methods=["GET"]),
            Route(f"{conversation}/abort", abort, methods=["POST"]),
            Route("/attach", attach, methods=["POST"]),
        ],
        middleware=[Middleware(Gate, digest=settings.bearer_digest)],
        exception_handlers=dict(answers.HANDLERS),
    )
