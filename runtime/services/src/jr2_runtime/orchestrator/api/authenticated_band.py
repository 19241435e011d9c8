"""The authenticated band: what the Custodian of a pod asks for, and whoever has the Instance token.

A conversation is named by an actor path, which travels as one percent-encoded segment; the server
has decoded it when a route is matched, so the route takes what stands before its last word. A
conversation is registered while its Turn runs. This version runs no Turn and makes no Sandbox, so
none is registered and none is there: the answers are those of a conversation that is over and of a
Sandbox that is gone. Whether it is there is answered before whose it is.

Source: spec/runtime.md §1.2–1.4 and §1.9.
"""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from ..store import Answer
from .auth import require, sandbox_name
from .described import described, json_body
from .errors import ApiError
from .once import answer_once, read_once
from .services import Services

_OVER = {
    404: "no such conversation is registered: its Turn is over",
    503: "the Orchestrator stops; ask again",
}
_BODY = {408: "the body did not come within 30 seconds", 413: "the body is too large"}


def authenticated_band(services: Services) -> APIRouter:
    """What opens to the Instance token and to the token of a pod."""
    router = APIRouter(dependencies=[Depends(require(("instance", "sandbox"), services))])

    def registered(iid: str) -> ApiError:
        """Return why a conversation is not served; while the program stops, that is not for good."""
        if services.feeds.is_closed:
            return ApiError(503, "the Orchestrator stops; ask again")
        return ApiError(404, f'no conversation "{iid}" is registered')

    async def refused(request: Request, why: ApiError) -> Response:
        """Refuse a write, unless its key is that of another one or is none."""

        async def act() -> Answer:
            raise why

        async with services.bodies.of(request) as body:
            return await answer_once(services.store, read_once(request, body), act)

    @router.get(
        "/agents/{iid:path}/surface",
        **described("authenticated", "the Menu and what is allowed", _OVER),
    )
    async def surface(iid: str) -> Response:
        """Show what an Agent may pick now."""
        raise registered(iid)

    @router.post(
        "/agents/{iid:path}/events",
        **described(
            "authenticated",
            "the receipt of the pick",
            _OVER | _BODY,
            writes=True,
            body=json_body(
                "The event that was picked, with its payload beside its name.",
                {
                    "type": "object",
                    "required": ["type"],
                    "properties": {"type": {"type": "string", "minLength": 1}},
                },
            ),
        ),
    )
    async def pick(iid: str, request: Request) -> Response:
        """Deliver what an Agent picked."""
        return await refused(request, registered(iid))

    @router.get(
        "/agents/{iid:path}/deliveries/{delivery}",
        **described("authenticated", "the answer to the pick", _OVER),
    )
    async def delivery(iid: str, delivery: str) -> Response:
        """Wait for the answer to a pick."""
        raise registered(iid)

    @router.post(
        "/sandboxes/{name}/fetch",
        **described(
            "authenticated",
            "when the Repo was fetched, or why it is stale",
            {404: "no such Sandbox; or the Repo is not mounted in it", 503: "too much is under way"}
            | _BODY,
            writes=True,
            body=json_body(
                "Which Repo.",
                {
                    "type": "object",
                    "required": ["identity"],
                    "properties": {"identity": {"type": "string"}},
                },
            ),
        ),
    )
    async def fetch(name: str, request: Request) -> Response:
        """Have a Repo of a Sandbox fetched; the token of a pod opens its own Sandbox alone."""
        own = sandbox_name(request.headers.get("authorization"), services.values)
        if own is not None and own != name:
            raise ApiError(403, f"this token does not open {request.url.path}")
        return await refused(request, ApiError(404, f'no Sandbox "{name}"'))

    return router
