"""A TLS proxy in front of a real API server that tells another version, and passes all else on.

What is asked through it is asked as the administrator. Each request is counted, so that a test can
say what a refused converge did.
"""

from __future__ import annotations

import contextlib
import json
import ssl
from pathlib import Path

import httpx2

from tests.apiserver.server import ApiServer
from tests.far_side import FarSide, Quiet

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

        class Handler(Quiet):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                proxy.requests.append(f"{self.command} {self.path.partition('?')[0]}")
                body = self.body()
                headers = {
                    name: value
                    for name, value in self.headers.items()
                    if name.lower() in _PASSED_ON
                }
                answer = proxy._http.request(self.command, self.path, content=body, headers=headers)
                self._answer(answer, proxy.rewritten(self.path, answer))

            def _answer(self, answer: httpx2.Response, data: bytes) -> None:
                kind = answer.headers.get("Content-Type", "text/plain")
                self.reply(answer.status_code, data, {"Content-Type": kind})

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _pass_on

        pair = self._behind.authority.issue("version-proxy", hosts=("127.0.0.1",))
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pair.certificate, pair.key)
        with contextlib.ExitStack() as made:
            self._http = made.enter_context(self._behind.client())
            self._server = made.enter_context(FarSide(Handler, tls=tls))
            self._made = made.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._made.close()

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig that leads to the proxy, with the context of the server behind it."""
        return self._behind.user_kubeconfig("through-a-proxy", server=self._server.url)

    def rewritten(self, path: str, answer: httpx2.Response) -> bytes:
        """Return the body of an answer, with the other version in that of `/version`."""
        if path.partition("?")[0] != "/version":
            return answer.content
        major, minor, *_ = self._version.removeprefix("v").split(".")
        said = {**answer.json(), "gitVersion": self._version, "major": major, "minor": minor}
        return json.dumps(said).encode()
