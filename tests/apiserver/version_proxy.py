"""A TLS proxy in front of a real API server that tells another version, and passes all else on.

What is asked through it is asked as the administrator. Each request is counted, so that a test can
say what a refused converge did.
"""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2

from tests.apiserver.server import ApiServer

_PASSED_ON = ("content-type", "accept")


class VersionProxy:
    """Runs while the `with` lasts.

    Args:
        behind: the API server.
        version: what `/version` says, such as `v1.34.2`.
    """

    def __init__(self, behind: ApiServer, version: str) -> None:
        self.requests: list[str] = []
        """Method and path of each request, in order."""
        self._behind = behind
        self._version = version

    def __enter__(self) -> VersionProxy:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                proxy.requests.append(f"{self.command} {self.path.partition('?')[0]}")
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {
                    name: value
                    for name, value in self.headers.items()
                    if name.lower() in _PASSED_ON
                }
                answer = proxy._http.request(self.command, self.path, content=body, headers=headers)
                self._answer(answer, proxy.rewritten(self.path, answer))

            def _answer(self, answer: httpx2.Response, data: bytes) -> None:
                self.send_response(answer.status_code)
                self.send_header("Content-Type", answer.headers.get("Content-Type", "text/plain"))
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _pass_on

            def log_message(self, format: str, *args: Any) -> None:
                pass

        pair = self._behind.authority.issue("version-proxy", hosts=("127.0.0.1",))
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pair.certificate, pair.key)
        with contextlib.ExitStack() as made:
            self._http = made.enter_context(self._behind.client())
            self._server = made.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
            self._server.daemon_threads = True
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
            thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
            thread.start()
            made.callback(thread.join)
            made.callback(self._server.shutdown)
            self._made = made.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._made.close()

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig that leads to the proxy, with the context of the server behind it."""
        address = f"https://127.0.0.1:{self._server.server_address[1]}"
        return self._behind.user_kubeconfig("through-a-proxy", server=address)

    def rewritten(self, path: str, answer: httpx2.Response) -> bytes:
        """Return the body of an answer, with the other version in that of `/version`."""
        if path.partition("?")[0] != "/version":
            return answer.content
        major, minor, *_ = self._version.removeprefix("v").split(".")
        said = {**answer.json(), "gitVersion": self._version, "major": major, "minor": minor}
        return json.dumps(said).encode()
