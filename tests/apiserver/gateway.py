"""A gateway before an API server: it notes each request, and may answer one of its own.

What a command reads and writes is seen here as it goes over the wire, whatever the command says
about it. The gateway speaks plain HTTP on loopback and brings an administrator's certificate to
the server.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2

from tests.apiserver.server import ApiServer
from tests.far_side import FarSide, Quiet

Answer = Callable[[str, str], Any]
"""Takes method and path; returns a JSON body, `None` to ask the server, or `DROPPED`."""

DROPPED = object()
"""The answer that never comes: the connection ends, and the server hears nothing of it."""

_HOP = frozenset({"connection", "content-length", "transfer-encoding", "host", "keep-alive"})


@dataclass(frozen=True, slots=True)
class Request:
    """One request that went through.

    Args:
        method: such as `PATCH`.
        path: its path, without the query.
        is_dry_run: nothing of it is stored.
    """

    method: str
    path: str
    is_dry_run: bool

    @property
    def writes(self) -> bool:
        """Whether it may change an object; a review is answered and not kept."""
        is_review = self.path.startswith("/apis/authorization.k8s.io/")
        return self.method != "GET" and not self.is_dry_run and not is_review


@dataclass(slots=True)
class Gateway:
    """A running gateway.

    Args:
        kubeconfig: leads through the gateway.
        requests: what went through, in order.
        answer: what is answered here instead of by the server.
    """

    kubeconfig: Path
    requests: list[Request] = field(default_factory=list)
    answer: Answer = lambda method, path: None

    @property
    def writes(self) -> list[str]:
        """Return the requests that may have changed an object, as `METHOD path`."""
        return [f"{one.method} {one.path}" for one in self.requests if one.writes]


@contextlib.contextmanager
def gateway(server: ApiServer, folder: Path) -> Iterator[Gateway]:
    """Run a gateway before a server.

    Args:
        server: the server.
        folder: where its kubeconfig is written.
    """
    made = Gateway(folder / "gateway.kubeconfig")
    with server.client() as upstream, FarSide(_handler(made, upstream)) as listening:
        name = server.context
        made.kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": name,
                    "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
                    "clusters": [{"name": name, "cluster": {"server": listening.url}}],
                    "users": [{"name": name, "user": {}}],
                }
            )
        )
        yield made


def _handler(made: Gateway, upstream: httpx2.Client) -> type[Quiet]:
    class Handler(Quiet):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            parts = urlsplit(self.path)
            dry = "All" in parse_qs(parts.query).get("dryRun", [])
            made.requests.append(Request(self.command, parts.path, dry))
            sent = self.body()
            own = made.answer(self.command, parts.path)
            if own is DROPPED:
                self.close_connection = True
                return
            if own is not None:
                self._send(200, [("content-type", "application/json")], json.dumps(own).encode())
                return
            try:
                answer = upstream.request(
                    self.command,
                    self.path,
                    content=sent,
                    headers=[(k, v) for k, v in self.headers.items() if k.lower() not in _HOP],
                )
            except httpx2.TransportError:
                # A watch that says nothing for long, or a server that is stopped: the client is
                # told as by any proxy, with the end of its connection.
                self.close_connection = True
                return
            kept = [
                (name, value)
                for name, value in answer.headers.items()
                if name.lower() not in {*_HOP, "content-encoding"}
            ]
            self._send(answer.status_code, kept, answer.content)

        def _send(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass

    return Handler
