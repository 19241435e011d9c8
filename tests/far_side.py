"""The far side of an HTTP client, on a port of its own: a test says what it answers.

What it is asked is handled in threads of its own, and the port is closed when the test is done.
"""

from __future__ import annotations

import json
import ssl
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, Final

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_POLL: Final = 0.02
"""Seconds until it notices that it is closed."""


class Quiet(BaseHTTPRequestHandler):
    """A request; nothing is logged of it."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def body(self) -> bytes:
        """Return what the request carries."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(self, status: int, body: object, headers: Mapping[str, str] = _NOTHING) -> None:
        """Answer the request.

        Args:
            status: the status.
            body: bytes as they are, and anything else as JSON.
            headers: headers beside the length.
        """
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    """A server whose clients may go whenever they like; what else fails is told on stderr."""

    # A request that still waits for something does not keep the test.
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class FarSide:
    """A server that listens from now on until it is closed.

    Args:
        handler: the kind of its requests.
        tls: what it shows its clients; without it, it speaks plain HTTP.
    """

    def __init__(
        self, handler: type[BaseHTTPRequestHandler], *, tls: ssl.SSLContext | None = None
    ) -> None:
        self._server = _Server(("127.0.0.1", 0), handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"{'http' if tls is None else 'https'}://{self.host}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL,))
        self._thread.start()

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> FarSide:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
