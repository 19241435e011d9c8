"""The routes that move runs, without the framework's machinery around them.

A route of FastAPI passes through eleven layers that look for dependencies, form fields, telemetry and
files; for an event of a Gate they take longer than the event itself. The routes here take a path
and a body that they read themselves, so the endpoint is called at once. It is the same function
that the app has under the same path: the document, the answers and the errors are the app's, and
what does not match here goes there.

Source: design §8, ADR-0163.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class Direct:
    """Calls the endpoints of some routes of an app, and leaves everything else to the app.

    Args:
        app: whose routes they are; its handlers make answers of exceptions.
        routes: their endpoints take the parameters of their path, which are not empty, and
            `request`, and return the answer.
        check: refuses who may not use them.
    """

    def __init__(
        self,
        app: FastAPI,
        routes: Sequence[APIRoute],
        check: Callable[[Request], Awaitable[None]],
    ) -> None:
        self._app = app
        self._routes = [
            (method, route.path_regex.match, route)
            for route in routes
            for method in route.methods or ()
        ]
        self._check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass the request on."""
        if scope["type"] == "http":
            for method, match, route in self._routes:
                found = match(scope["path"]) if method == scope["method"] else None
                if found is not None and all(found.groups()):
                    scope["route"] = route
                    response = await self._answer(
                        route, found.groupdict(), Request(scope, receive, send)
                    )
                    await response(scope, receive, send)
                    return
        await self._app(scope, receive, send)

    async def _answer(
        self, route: APIRoute, parameters: dict[str, str], request: Request
    ) -> Response:
        try:
            await self._check(request)
            answer: Response = await route.endpoint(**parameters, request=request)
        except Exception as failed:
            answer = await self._refusal(request, failed)
        return answer

    async def _refusal(self, request: Request, failed: Exception) -> Response:
        """Return what the app answers to an exception."""
        for kind in type(failed).__mro__:
            handler = self._app.exception_handlers.get(kind)
            if handler is not None:
                response: Response = await handler(request, failed)  # type: ignore[misc]  # they are coroutines of ours
                return response
        raise failed
