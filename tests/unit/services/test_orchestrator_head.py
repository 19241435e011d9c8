"""HEAD answers as GET does without the body, through the real server; a feed ends with its head."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.services.listening import serving
from tests.waiting import LIMIT

pytestmark = pytest.mark.anyio


def parsed(head: bytes) -> tuple[int, dict[str, str]]:
    """Return the status and the headers of an answer, but for its moment."""
    first, *lines = head.decode().rstrip("\r\n").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return int(first.split()[1]), {k: v for k, v in headers.items() if k != "date"}


async def test_head_is_get_without_the_body(bench: Any) -> None:
    run = await bench.start("gate")
    async with serving(bench) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def head(method: str, path: str, token: str = "instance-token") -> Any:
            """Return the status and the headers; nothing follows the head of an answer to HEAD."""
            writer.write(
                f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {token}\r\n\r\n".encode()
            )
            async with asyncio.timeout(LIMIT):
                found = parsed(await reader.readuntil(b"\r\n\r\n"))
                if method == "GET":
                    await reader.readexactly(int(found[1]["content-length"]))
                return found

        for path, code in (
            ("/healthz", 200),
            ("/workflows", 200),
            (f"/runs/{run}", 200),
            ("/runs/none", 404),
            ("/nothing", 404),
            ("/blobs", 405),
            ("/openapi.json", 200),
        ):
            asked = await head("HEAD", path)
            assert asked == await head("GET", path), path
            assert asked[0] == code, path
        assert (await head("HEAD", "/runs", token="who"))[0] == 401
        for path in (f"/runs/{run}/events", "/workflows/gate/events"):
            asked = await head("HEAD", path)
            assert asked[0] == 200
            assert asked[1]["content-type"].startswith("text/event-stream")
            await bench.eventually(lambda: len(bench.feeds) == 0)
        # The connection is in step still.
        assert (await head("GET", "/healthz"))[0] == 200
        writer.close()
    found = (await bench.client.get("/metrics")).text
    assert 'method="HEAD",route="/runs/{run}"' in found
