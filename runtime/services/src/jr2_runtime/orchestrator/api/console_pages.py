"""The Console's page and its files, as answers.

A file is sent with a digest of its bytes, and a browser asks each time whether it is still the
same: so after an upgrade no part of the page is older than another, and an unchanged file is not
sent again. The page itself is sent each time. A browser takes an answer that was cut in its head for
a whole one: a page that it kept empty would stay so by each 304, and nothing in it could mend that.

Source: spec/runtime.md §1.4 and §1.15, ADR-0113.
"""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request
from starlette.responses import Response

from ... import console
from .described import described
from .errors import ApiError
from .negotiation import prefers_html

MEDIA = ("text/javascript", "text/css", "image/svg+xml", "text/plain")


def wants_page(request: Request) -> bool:
    """Whether a request is a browser's that shows a page."""
    return prefers_html(request.headers.getlist("accept"))


class ConsolePages:
    """Answers with the page and its files.

    Args:
        assets: the files by name, as `console.load()` returns them.
    """

    def __init__(self, assets: Mapping[str, console.Asset]) -> None:
        self._assets = assets
        self._security = console.security(assets[console.SHELL].body)

    def page(self, request: Request) -> Response:
        """Return the Console, the same bytes at each of its addresses."""
        page = self._assets[console.SHELL]
        headers = {**self._security, "Cache-Control": "no-cache", "Vary": "Accept"}
        return Response(page.body, headers=headers, media_type=page.media)

    def routes(self) -> APIRouter:
        """The routes that have no other dialect."""
        router = APIRouter()

        @router.get(
            "/",
            **described(
                "open",
                "the Console, when `Accept` prefers `text/html`",
                {404: "another `Accept`: nothing else is here"},
                media="text/html",
            ),
        )
        async def root(request: Request) -> Response:
            """Show the Console in a browser."""
            if not wants_page(request):
                raise ApiError(404, "the Console is here, for a browser that asks for text/html")
            return self.page(request)

        @router.get(
            "/assets/{file}",
            **described(
                "open",
                "the file, with an `ETag`",
                {404: "the Console has no such file"},
                media=MEDIA,
                more={304: "`If-None-Match` names its `ETag`"},
            ),
        )
        async def asset(file: str, request: Request) -> Response:
            """Give a file of the Console."""
            found = None if file == console.SHELL else self._assets.get(file)
            if found is None:
                raise ApiError(404, f'the Console has no file "{file}"')
            return self._file(found, request)

        return router

    def _file(self, asset: console.Asset, request: Request) -> Response:
        headers = {**self._security, "ETag": asset.etag, "Cache-Control": "no-cache"}
        if _names(request.headers.getlist("if-none-match"), asset.etag):
            return Response(status_code=304, headers=headers)
        return Response(asset.body, headers=headers, media_type=asset.media)


def _names(headers: list[str], etag: str) -> bool:
    """Whether `If-None-Match` names what would be sent."""
    given = [each.strip().removeprefix("W/") for each in ",".join(headers).split(",")]
    return etag in given
