"""The answers that the programs of pods share: an error is `{"error": …}`, and so is a wrong path.

Source: design §4.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ExceptionHandler

from jr2 import names


def error(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return an error as every service of jr2 says it."""
    return JSONResponse({"error": message}, status_code=status, headers=headers)


async def healthy(request: Request) -> Response:
    """Answer `/healthz`: the program serves, and says which Kit version it is of."""
    return JSONResponse({"ok": True, "version": names.KIT_VERSION})


async def _http_error(request: Request, failed: Exception) -> Response:
    assert isinstance(failed, HTTPException)
    return error(failed.status_code, failed.detail.lower(), failed.headers)


HANDLERS: Final[Mapping[type[Exception], ExceptionHandler]] = {HTTPException: _http_error}
"""What an app is given, so that its own 404 and 405 are errors of this form too."""
