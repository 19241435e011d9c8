"""HEAD: what GET would answer, without its body.

The request passes on as a GET. Once the head of its answer is there, its sender has gone for whoever
answers, so a feed ends at once.

Source: RFC 9110 §9.3.2.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Head:
    """Answers HEAD by what answers GET.

    Args:
        app: what answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        # The server has the scope still, and sends no body for it.
        passed_on = {**scope, "method": "GET"}
        answered = asyncio.Event()

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                answered.set()

        async def receiving() -> Message:
            await answered.wait()
            return {"type": "http.disconnect"}

        await self._app(passed_on, receiving, sending)
        scope["route"] = passed_on.get("route")
