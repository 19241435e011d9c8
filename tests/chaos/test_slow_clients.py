"""Clients that attach to feeds and read nothing: what waits for them fits the memory, and ends."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from typing import Any

import httpx2

from jr2_runtime.orchestrator.feeds import MOST_BYTES, MOST_FEEDS
from jr2_runtime.serving.descriptors import RESERVED, connections_that_fit
from tests.waiting import LIMIT, wait_for

CLIENTS = MOST_FEEDS - 10
SIZE = 400_000
SLACK = 150 * 2**20
"""Beside what waits: the buffers of the connections, and what the program needs for them."""
LARGE = f'''
from __future__ import annotations

from jr2 import Context, ExternalEvent, Machine


class Grow(ExternalEvent):
    """Have another text."""

    letter: str


class Ctx(Context):
    """The data."""

    text: str = ""


m = Machine("large", context=Ctx, start=lambda i: Ctx(text="x" * {SIZE}))
open_ = m.state("open", initial=True)
open_.gate()
open_.on(Grow, to=open_, assign=lambda c, e: c.set(text=e.letter * {SIZE}))
machine = m.build()
'''


def resident(process: Any) -> int:
    """Return the bytes of memory that a process has."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def attach(pod: Any, run: str) -> socket.socket:
    """Attach to the feed of a run, and read nothing."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", pod.port))
    client.sendall(
        f"GET /runs/{run}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {pod.instance_token}\r\n\r\n".encode()
    )
    return client


def test_clients_that_read_nothing_take_no_more_than_there_is_for_them(pod: Any) -> None:
    pod.start_worker()
    main = pod.start_orchestrator()
    assert pod.publish(pod.assembly({"large": LARGE})).status_code == 201
    run = pod.start_run("large")

    def grow(letter: str) -> None:
        answer = pod.client.post(
            f"/runs/{run}/gates/open/events", json={"type": "grow", "letter": letter}
        )
        assert answer.status_code == 200, answer.text

    grow("y")
    before = resident(main)
    assert connections_that_fit(CLIENTS) == CLIENTS  # the test's own limit
    with contextlib.ExitStack() as held:
        for _ in range(CLIENTS):
            held.enter_context(attach(pod, run))
        for number in range(20):
            grow(chr(ord("a") + number))
            assert resident(main) - before < MOST_BYTES + SLACK
        # Others are served meanwhile.
        assert pod.status(run)["context"]["text"] == "t" * SIZE

    # Who has gone holds nothing: a client that reads is told at once.
    def is_told() -> bool:
        with pod.client.stream("GET", f"/runs/{run}/events") as feed:
            first = next(feed.iter_lines()) if feed.status_code == 200 else ""
        return bool(first == "event: status")

    wait_for("a client that reads is told", is_told)


def test_peers_that_only_connect_leave_descriptors_for_the_store_and_a_publish(pod: Any) -> None:
    most = 600
    pod.start_worker()
    main = pod.start_orchestrator("prlimit", f"--nofile={most // 2}:{most}")
    # One that rests is let go by its client after a few seconds, and another one finds no room.
    lasting = httpx2.Limits(keepalive_expiry=None)
    pod.client.close()
    pod.client = httpx2.Client(
        base_url=pod.client.base_url,
        headers=pod.client.headers,
        timeout=LIMIT,
        trust_env=False,
        limits=lasting,
    )
    assert pod.publish(pod.assembly({"large": LARGE})).status_code == 201
    with contextlib.ExitStack() as held:
        # The one connection that was there before goes on, and so does everything behind it.
        for number in range(2 * most):
            held.enter_context(socket.create_connection(("127.0.0.1", pod.port)))
            if number % 20 == 0:
                assert pod.client.get("/healthz").is_success
        wait_for(
            "as many as fit",
            lambda: pod.client.get("/healthz").is_success and descriptors(main) >= most - RESERVED,
        )
        assert pod.publish(pod.assembly({"large": LARGE + "# again\n"})).status_code == 201
        run = pod.start_run("large")
        assert pod.status(run)["status"] == "active"
        assert descriptors(main) < most - RESERVED // 2
    with httpx2.Client(base_url=pod.client.base_url, trust_env=False) as other:

        def is_served() -> bool:
            with contextlib.suppress(httpx2.TransportError):
                return other.get("/readyz").status_code == 200
            return False

        wait_for("room for another one", is_served)


def descriptors(process: Any) -> int:
    return len(os.listdir(f"/proc/{process.pid}/fd"))
