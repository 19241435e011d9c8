"""A request for a whole address is one for its path, and passes by none of the rules.

Real sockets to the real server, for a client library does not send such a target.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.unit.services.listening import serving
from tests.waiting import LIMIT

pytestmark = pytest.mark.anyio

INSTANCE = "Authorization: Bearer instance-token"
PUBLISH = "Authorization: Bearer publish-token"


async def ask(port: int, line: str, *headers: str, body: str = "") -> tuple[int, bytes]:
    """Send one request as it stands; return the status and the body as it was sent."""
    head = "\r\n".join(
        [f"{line} HTTP/1.1", *headers, f"Content-Length: {len(body)}", "Connection: close"]
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"{head}\r\n\r\n{body}".encode())
        async with asyncio.timeout(LIMIT):
            answer = await reader.read()
    finally:
        writer.close()
    said, _, content = answer.partition(b"\r\n\r\n")
    return int(said.split()[1]), content


async def test_a_whole_address_is_answered_as_its_path_is(bench: Any) -> None:
    run = await bench.start("gate")
    async with serving(bench) as port:
        for path in ("/workflows", "/workflows/gate", f"/runs/{run}", "/runs?prefix=x", "/nothing"):
            plain = await ask(port, f"GET {path}", "Host: localhost", INSTANCE)
            for address in ("http://localhost", f"HTTP://127.0.0.1:{port}", "http://[::1]:1"):
                whole = await ask(port, f"GET {address}{path}", "Host: localhost", INSTANCE)
                assert whole == plain, (address, path)

        code, _ = await ask(
            port,
            "POST http://localhost/workflows/gate/runs",
            "Host: localhost",
            INSTANCE,
            body="{}",
        )
        assert code == 201
        # An address without a path is that of `/`, whose page is for browsers.
        bare = await ask(port, "GET http://localhost?x=1", "Host: localhost")
        assert bare == await ask(port, "GET /?x=1", "Host: localhost")
        escaped = await ask(port, "GET http://localhost/workflows/%67ate", "Host: localhost")
        assert (escaped[0], json.loads(escaped[1])["name"]) == (200, "gate")
        assert await ask(port, "HEAD http://localhost/workflows", "Host: localhost") == (200, b"")


@pytest.mark.parametrize(
    "address",
    [
        "http://evil.example",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://evil.example@localhost",
        "http://localhost:80@evil.example",
        "http://localhost\\@evil.example",
        "http://evil.example?@localhost",
        "http://evil.example#@localhost",
        "http://local%68ost",
        "http://",
    ],
)
async def test_the_host_of_the_address_counts_and_no_header_helps(bench: Any, address: str) -> None:
    refusal = (421, b'{"error":"this Orchestrator has another name"}')
    async with serving(bench) as port:
        assert await ask(port, "GET /healthz", "Host: evil.example") == refusal
        for path in ("/healthz", "/runs"):
            assert await ask(port, f"GET {address}{path}", "Host: localhost", INSTANCE) == refusal
        write = await ask(
            port, f"POST {address}/workflows/gate/runs", "Host: localhost", INSTANCE, body="{}"
        )
        assert write == refusal

    assert (await bench.get("/runs")).json() == []


async def test_a_foreign_host_beside_a_known_address_is_ignored(bench: Any) -> None:
    async with serving(bench) as port:
        code, _ = await ask(port, "GET http://localhost/healthz", "Host: evil.example")
        assert code == 200
        # No `Host` at all, or two, is no HTTP, whatever the target says.
        for hosts in ((), ("Host: localhost", "Host: localhost")):
            code, _ = await ask(port, "GET http://localhost/healthz", *hosts)
            assert code == 400


@pytest.mark.parametrize(
    ("address", "origin", "code"),
    [
        ("http://localhost:8080", "http://localhost:8080", 201),
        ("http://localhost:8080", "http://localhost", 403),
        ("http://localhost:8080", "http://evil.example", 403),
        # The page has the address that `Host` says, and that is none any more.
        ("http://127.0.0.1", "http://localhost", 403),
        ("http://evil.example", "http://evil.example", 421),
    ],
)
async def test_a_write_of_a_page_is_taken_from_the_address_that_it_asks(
    bench: Any, address: str, origin: str, code: int
) -> None:
    async with serving(bench) as port:
        got, _ = await ask(
            port,
            f"POST {address}/workflows/gate/runs",
            "Host: localhost",
            f"Origin: {origin}",
            INSTANCE,
            body="{}",
        )

    assert got == code
    assert len((await bench.get("/runs")).json()) == (code == 201)


async def test_a_whole_address_opens_no_band(bench: Any) -> None:
    at = "http://localhost"
    async with serving(bench) as port:
        for line, headers, code in (
            ("GET {}/runs", (), 401),
            ("GET {}/runs", ("Authorization: Bearer wrong",), 401),
            ("GET {}/runs", (PUBLISH,), 403),
            ("POST {}/workflows/gate/runs", (), 401),
            ("POST {}/workflows/gate/runs", (PUBLISH,), 403),
            ("PUT {}/blobs/" + "0" * 64, (), 401),
            ("PUT {}/blobs/" + "0" * 64, (INSTANCE,), 403),
            ("GET {}/assemblies", (), 401),
        ):
            whole = await ask(port, line.format(at), "Host: localhost", *headers)
            assert whole == await ask(port, line.format(""), "Host: localhost", *headers)
            assert whole[0] == code, line


@pytest.mark.parametrize(
    "target", ["https://localhost/healthz", "ftp://localhost/healthz", "http:/localhost/healthz"]
)
async def test_an_address_of_another_scheme_is_not_here(bench: Any, target: str) -> None:
    async with serving(bench) as port:
        code, answer = await ask(port, f"GET {target}", "Host: localhost")

    assert (code, list(json.loads(answer))) == (404, ["error"])
