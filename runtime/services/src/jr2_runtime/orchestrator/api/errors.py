"""The one error body, for our own refusals and for those of the framework."""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from jr2.wire import Wire

from ..assemblies.publish import PublishError
from ..engine import EventRefused
from ..store import StoreError

RETRY_AFTER: Final = "1"
"""Seconds after which what was refused with 503 may be sent again."""
log = logging.getLogger("jr2.api")


class ApiError(Exception):
    """An answer that is an error.

    Args:
        code: the HTTP status.
        message: the text.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def answer(content: Any, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return JSON in ASCII, so that whatever text user code gave can be sent."""
    body = json.dumps(content, separators=(",", ":")).encode()
    return Response(body, code, headers, media_type="application/json")


def shape(model: Wire, code: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a shape without what was not said."""
    return answer(model.model_dump(mode="json", by_alias=True, exclude_unset=True), code, headers)


def error(code: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """Return the error body."""
    return answer({"error": message}, code, headers)


def _ask_again(code: int) -> dict[str, str] | None:
    """What passes by itself: the sender asks again, and no queue grows for it."""
    return {"Retry-After": RETRY_AFTER} if code == 503 else None


def install(app: FastAPI) -> None:
    """Have every error of the app answered with the one body."""

    async def api_error(_: Request, failed: Exception) -> Response:
        assert isinstance(failed, ApiError)
        return error(failed.code, failed.message, _ask_again(failed.code))

    async def refused(_: Request, failed: Exception) -> Response:
        assert isinstance(failed, EventRefused)
        return error(failed.code, failed.message, _ask_again(failed.code))

    async def publish_refused(_: Request, failed: Exception) -> Response:
        assert isinstance(failed, PublishError)
        body = {"error": failed.message, "problems": failed.problems}
        return answer(body, failed.code, _ask_again(failed.code))

    async def not_stored(_: Request, failed: Exception) -> Response:
        log.error("a change was not stored", extra={"reason": str(failed)})
        return error(507, "the store did not take the change; nothing was done")

    async def framework(_: Request, failed: Exception) -> Response:
        assert isinstance(failed, HTTPException)
        text = str(failed.detail) or HTTPStatus(failed.status_code).phrase
        return error(failed.status_code, text.lower(), dict(failed.headers or {}))

    async def invalid(_: Request, failed: Exception) -> Response:
        assert isinstance(failed, RequestValidationError)
        places = ", ".join(".".join(map(str, each["loc"])) for each in failed.errors())
        return error(422, f"the request is not valid at {places}")

    async def unexpected(request: Request, failed: Exception) -> Response:
        log.error(
            "a request failed",
            exc_info=failed,
            extra={"method": request.method, "path": request.url.path},
        )
        return error(500, "internal error")

    app.add_exception_handler(ApiError, api_error)
    app.add_exception_handler(EventRefused, refused)
    app.add_exception_handler(PublishError, publish_refused)
    app.add_exception_handler(StoreError, not_stored)
    app.add_exception_handler(HTTPException, framework)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(Exception, unexpected)
