"""A host of releases: a real HTTP server that a test makes cut, redirect or lie."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator

import pytest

from jr2_cli.tools import catalogue, versions
from jr2_cli.tools.official import table
from tests.far_side import FarSide, Quiet
from tests.waiting import LIMIT

HERE = table.this_platform()
BODY = bytes(range(256)) * 4096  # 1 MiB
RANGE = versions.Range(at_least="1", below="2")


class Host:
    """A host of releases.

    Args:
        files: what it serves, by path.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.cut_after: list[int] = []
        """Bytes of the body after which a connection ends, for each answer in turn."""
        self.ranges = True
        self.gate: threading.Event | None = None
        """When set, an answer stops after its first half until the event is set."""
        self.asked: list[tuple[str, str | None]] = []
        outer = self

        class Handler(Quiet):
            def do_GET(self) -> None:
                outer._get(self)

        self._server = FarSide(Handler)
        self.url = self._server.url

    def close(self) -> None:
        self._server.close()

    def _get(self, request: Quiet) -> None:
        wanted = request.headers.get("Range")
        self.asked.append((request.path, wanted))
        if request.path in self.redirects:
            request.send_response(302)
            request.send_header("Location", self.redirects[request.path])
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        body = self.files.get(request.path)
        if body is None:
            request.send_error(404)
            return
        start = 0
        if wanted is not None and self.ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                request.send_error(416)
                return
            request.send_response(206)
            request.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            request.send_response(200)
        sent = body[start:]
        request.send_header("Content-Length", str(len(sent)))
        request.end_headers()
        if self.cut_after:
            sent = sent[: self.cut_after.pop(0)]
            request.close_connection = True
        if self.gate is not None:
            request.wfile.write(sent[: len(sent) // 2])
            request.wfile.flush()
            self.gate.wait(LIMIT)
            sent = sent[len(sent) // 2 :]
        request.wfile.write(sent)


@pytest.fixture
def host() -> Iterator[Host]:
    server = Host()
    yield server
    server.close()


def sum_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def archive_of(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            entry = tarfile.TarInfo(name.replace("__", "/"))
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        link = tarfile.TarInfo("bin/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return buffer.getvalue()


def released(host: Host, name: str, *, member: str | None = None) -> catalogue.Program:
    """A program that the host publishes, and that no machine has."""
    return catalogue.Program(
        name=name,
        version="1.2.3",
        module=catalogue.Module(name="etcd"),
        package=".",
        accepts=RANGE,
        release=table.Release(
            asset="tiny", address=f"{host.url}/v{{version}}/{{os}}-{{arch}}", member=member
        ),
    )
