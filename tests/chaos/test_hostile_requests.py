"""Requests that no client of ours sends, byte for byte: each gets its answer, and nothing grows."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
from pathlib import Path
from typing import Any, Final

import pytest

from jr2 import names
from tests.chaos.test_slow_clients import resident
from tests.waiting import LIMIT

LEDGER = Path(__file__).parent / "workflows" / "ledger.py"
HOST: Final = b"Host: 127.0.0.1\r\n"
CLOSE: Final = b"Connection: close\r\n"
SLACK: Final = 40 * 2**20
NOTE: Final = '{"type":"note","number":%s}'


@pytest.fixture(scope="module")
def ledger(served_pod: Any) -> Any:
    """A pod with a run that takes numbers, as `run`; `main` is not known, so its memory is looked up."""
    assert served_pod.publish(served_pod.assembly({"ledger": LEDGER.read_text()})).is_success
    served_pod.run = served_pod.start_run("ledger")
    served_pod.gate = f"/runs/{served_pod.run}/gates/writing/events"
    return served_pod


def said(pod: Any, request: bytes) -> list[tuple[int, bytes]]:
    """Send bytes, and return the answers until the connection is closed, each with its body."""
    with socket.create_connection(("127.0.0.1", pod.port), timeout=LIMIT) as peer:
        received = b""
        # Who is answered before all is sent may lose the connection, and the answer is there still.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            peer.sendall(request)
        with contextlib.suppress(ConnectionResetError):
            while piece := peer.recv(2**16):
                received += piece
    answers = []
    for answer in received.split(b"HTTP/1.1 ")[1:]:
        head, _, body = answer.partition(b"\r\n\r\n")
        answers.append((int(head[:3]), body))
    return answers


def head(pod: Any, line: str, *more: bytes, token: bool = True) -> bytes:
    bearer = f"Authorization: Bearer {pod.instance_token}\r\n".encode() if token else b""
    return b"".join((line.encode(), b" HTTP/1.1\r\n", HOST, bearer, *more))


def post(pod: Any, path: str, body: str | bytes, *more: bytes) -> bytes:
    body = body if isinstance(body, bytes) else body.encode()
    length = b"Content-Length: %d\r\n" % len(body)
    return head(pod, f"POST {path}", length, *more, CLOSE) + b"\r\n" + body


def kept(request: bytes) -> bytes:
    """Return a request after which the connection stays."""
    return request.replace(CLOSE, b"", 1)


BODIES: Final[dict[str, tuple[str | bytes, int, object]]] = {
    # a body, its answer, and the number that was written down
    "NaN": (NOTE % "NaN", 400, None),
    "an infinity": (NOTE % "-Infinity", 400, None),
    "more than a float holds": (NOTE % "1e999", 400, None),
    "an integer of 5 000 digits": (NOTE % ("9" * 5000), 400, None),
    "more than 64 bits": (NOTE % 2**70, 200, 2**70),
    "an exponent": (NOTE % "1e2", 200, 100),
    "a fraction": (NOTE % "1.5", 400, None),
    "a text": (NOTE % '"one"', 400, None),
    "a key twice": ('{"type":"note","number":1,"number":2}', 200, 2),
    "the type twice": ('{"type":"x","type":"note","number":3}', 200, 3),
    "half a surrogate pair": ('{"type":"note","number":1,"x":"\\ud800"}', 400, None),
    "half a pair as a key": ('{"type":"note","number":1,"\\udfff":1}', 400, None),
    "UTF-16": ((NOTE % 4).encode("utf-16"), 200, 4),
    "UTF-32": ((NOTE % 5).encode("utf-32"), 200, 5),
    "UTF-16 with half a pair": (b'\xff\xfe{\0"\0\0\xd8"\0:\0' + b"1\0}\0", 400, None),
    "no UTF-8": (b'{"type":"note","number":1,"x":"\xff"}', 400, None),
    "a mark of the byte order": (b"\xef\xbb\xbf" + (NOTE % 6).encode(), 200, 6),
    "another field": ('{"type":"note","number":1,"__proto__":{}}', 400, None),
    "deep lists": ("[" * 100_000 + "]" * 100_000, 400, None),
    "deep objects": ('{"a":' * 40_000 + "1" + "}" * 40_000, 400, None),
    "a type that is no text": ('{"type":1}', 400, None),
    "a type of control characters": ('{"type":"\\u0000\\u202e\\n"}', 400, None),
    "gzip that nobody asked for": (gzip.compress((NOTE % 7).encode()), 400, None),
    "nothing": ("", 400, None),
}


@pytest.mark.parametrize("what", BODIES)
def test_a_body_is_taken_as_it_is_or_not_at_all(ledger: Any, what: str) -> None:
    body, code, number = BODIES[what]
    before = ledger.status(ledger.run)["context"]["numbers"]

    ((answered, content),) = said(ledger, post(ledger, ledger.gate, body))

    assert answered == code, content
    if code >= 400:
        assert isinstance(json.loads(content)["error"], str)
    after = ledger.status(ledger.run)["context"]["numbers"]
    assert after == (before if number is None else [*before, number])


def test_heads_and_frames_that_are_odd(ledger: Any) -> None:
    runs = "/workflows/ledger/runs"
    chunked = b"Transfer-Encoding: chunked\r\n"

    def chunks(text: bytes, *more: bytes) -> bytes:
        return head(ledger, f"POST {runs}", chunked, CLOSE, *more) + b"\r\n" + text

    close = CLOSE + b"\r\n"
    expected: dict[str, tuple[bytes, set[int]]] = {
        "trailers": (chunks(b"2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\n\r\n"), {201}),
        "a chunk's extension": (chunks(b"2;a=b\r\n{}\r\n0\r\n\r\n"), {201}),
        "a chunk of no size": (chunks(b"zz\r\n{}\r\n0\r\n\r\n"), {400}),
        "another coding": (
            head(ledger, f"POST {runs}", b"Transfer-Encoding: gzip, chunked\r\n", close),
            {400},
        ),
        "two lengths": (post(ledger, runs, "{}", b"Content-Length: 3\r\n"), {400}),
        "no length": (head(ledger, f"POST {runs}", b"Content-Length: -1\r\n\r\n{}"), {400}),
        "a signed length": (head(ledger, f"POST {runs}", b"Content-Length: +2\r\n\r\n{}"), {400}),
        "100-continue": (post(ledger, runs, "{}", b"Expect: 100-continue\r\n"), {100, 201}),
        "too large to continue": (
            head(
                ledger, f"POST {runs}", b"Expect: 100-continue\r\nContent-Length: 104857600\r\n", close
            ),
            {413},
        ),
        "too large": (post(ledger, runs, b"x" * (names.MAX_EVENT + 1)), {413}),
        "a range": (head(ledger, "GET /assets/main.js", b"Range: bytes=1-,,\r\n", close), {200}),
        "any entity": (head(ledger, "GET /assets/main.js", b"If-None-Match: \xff,\r\n", close), {200}),
        "many entities": (
            head(ledger, "GET /assets/main.js", b"If-None-Match: " + b'"a",' * 9000 + b"\r\n", close),
            {200},
        ),
        "two entries of a Gate": (
            post(ledger, ledger.gate, NOTE % 1, b"If-Gate: a\r\nIf-Gate: \xff\r\n"),
            {412},
        ),
        "an empty key": (post(ledger, runs, "{}", b"Idempotency-Key: \r\n"), {400}),
        "two keys": (post(ledger, runs, "{}", b"Idempotency-Key: a\r\nIdempotency-Key: b\r\n"), {400}),
        "a token of any bytes": (
            head(ledger, "GET /runs", b"Authorization: Bearer \xff\xfe\r\n", close, token=False),
            {401},
        ),
        "two tokens, the first unknown": (
            head(ledger, "GET /runs", b"Authorization: Bearer x\r\n", token=False)
            + head(ledger, "", close).partition(HOST)[2],
            {401},
        ),
        "no host": (b"GET /runs HTTP/1.1\r\nConnection: close\r\n\r\n", {400}),
        "another host": (b"GET /healthz HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n", {421}),
        "two hosts": (head(ledger, "GET /healthz", HOST, close), {400, 421}),
        "a page of another site": (post(ledger, runs, "{}", b"Origin: http://127.0.0.1\\@a\r\n"), {403}),
        "a page of nowhere": (post(ledger, runs, "{}", b"Origin: null\r\n"), {403}),
        "bytes in a path": (head(ledger, "GET /runs/%ff%00%zz", close), {404}),
        "a long path": (head(ledger, "GET /runs/" + "a" * 30_000, close), {404}),
        "a path that goes up": (head(ledger, "GET /assets/..%2f..%2fetc%2fpasswd", close), {404}),
        "a pattern as a prefix": (head(ledger, "GET /runs/resolve?prefix=%25%25%25%5f", close), {200}),
        "a large head": (head(ledger, "GET /healthz", b"X: " + b"a" * 300_000 + b"\r\n", close), {400}),
        "a head without a colon": (head(ledger, "GET /healthz", b"x\r\n", close), {400}),
        "a null in a head": (head(ledger, "GET /healthz", b"X: a\0b\r\n", close), {400}),
        "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200), {400}),
        "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 421}),
        "another method": (head(ledger, "TRACE /runs", close), {405}),
        "a body that is a request": (
            kept(post(ledger, runs, "{}")) + b"GET /runs HTTP/1.1\r\n" + HOST + close,
            {201, 401},
        ),
    }  # fmt: skip
    wrong = {}
    for what, (request, codes) in expected.items():
        answers = said(ledger, request)
        got = {code for code, _ in answers}
        if not got or not got <= codes:
            wrong[what] = answers
    assert wrong == {}


def test_pipelined_writes_are_each_done_once_and_in_order(ledger: Any) -> None:
    before = ledger.status(ledger.run)["context"]["numbers"]
    last = head(ledger, "GET /healthz", b"Connection: close\r\n\r\n")
    writes = b"".join(kept(post(ledger, ledger.gate, NOTE % number)) for number in range(50))

    answers = said(ledger, writes + last)

    assert [code for code, _ in answers] == [200] * 51
    assert ledger.status(ledger.run)["context"]["numbers"] == [*before, *range(50)]


def test_large_bodies_leave_no_memory_and_no_secret_behind(pod: Any) -> None:
    pod.start_worker()
    main = pod.start_orchestrator()
    assert pod.publish(pod.assembly({"ledger": LEDGER.read_text()})).status_code == 201
    pod.start_run("ledger")
    before = resident(main)
    large = b"x" * (100 * 2**20)
    for token in (True, False):
        for _ in range(3):
            length = CLOSE + b"Content-Length: %d\r\n\r\n" % len(large)
            request = head(pod, "POST /workflows/ledger/runs", length, token=token) + large
            # Who is still sending may lose the answer, and nothing else.
            assert {code for code, _ in said(pod, request)} <= {413 if token else 401}
            assert resident(main) - before < SLACK
    assert len(pod.client.get("/runs").json()) == 1
