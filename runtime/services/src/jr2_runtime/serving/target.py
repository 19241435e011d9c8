"""A request whose target is a whole address is served as one whose target is a path.

A server takes `GET http://host:port/path` as well as `GET /path`, and of the two hosts that such a
request names, the one of its target counts: its `Host` is ignored. So what checks the `Host` behind
this checks the host that was really asked for. A target of another scheme is passed on as it is,
and no route has it.

Source: RFC 9112 §3.2.2, RFC 9110 §7.4.
"""

from __future__ import annotations

from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send


class OriginForm:
    """Passes requests on with a path for their target.

    Args:
        app: what answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] == "http" and not scope["raw_path"].startswith(b"/"):
            scope = _origin_form(scope)
        await self._app(scope, receive, send)


def _origin_form(scope: Scope) -> Scope:
    scheme, separator, rest = scope["raw_path"].partition(b"://")
    if not separator or scheme.lower() != b"http":
        return scope
    host, _, path = rest.partition(b"/")
    path = b"/" + path
    headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
    return {
        **scope,
        "path": unquote(path.decode("ascii")),
        "raw_path": path,
        "headers": [(b"host", host), *headers],
    }
