"""A forward whose kubectl talks much and whose far side answers late."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import httpx2
import pytest

from jr2_infra import kubectl
from jr2_infra.port_forward import ForwardFailed, NotTheInstance, PortForward
from tests.waiting import LIMIT

FLOOD = "x" * 200_000
KEY = "A" * 43
"""The signing key of 32 bytes that are zero."""


def program(folder: Path, body: str) -> Path:
    """A kubectl that does what the test says; `far` is a socket that nobody listens on yet."""
    path = folder / "kubectl"
    path.write_text(
        f"#!{sys.executable} -I\n"
        + textwrap.dedent(
            """\
            import base64, hmac, http.server, json, os, socket, sys, time
            far = socket.socket()
            far.bind(("127.0.0.1", 0))
            announced = f"Forwarding from 127.0.0.1:{far.getsockname()[1]} -> 4000"
            """
        )
        + textwrap.dedent(body)
    )
    path.chmod(0o755)
    return path


LATE = f"""
print(announced, flush=True)
for stream in (sys.stdout, sys.stderr):
    print({FLOOD!r}, file=stream, flush=True)

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        nonce = "healthz:" + self.headers.get("X-JR2-Nonce", "")
        proof = hmac.new(b"\\0" * 32, nonce.encode(), "sha256").digest()
        body = json.dumps({{"proof": base64.urlsafe_b64encode(proof).decode().rstrip("=")}}).encode()
        self.send_response(200 if self.headers.get("Authorization") is None else 500)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass

time.sleep(0.2)
server = http.server.HTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
server.socket.close()
server.socket = far
server.server_activate()
server.serve_forever()
"""


def test_a_port_is_given_once_it_answers_however_much_kubectl_says(tmp_path: Path) -> None:
    """Pipes that nobody reads would stop this kubectl before it listens."""
    with kubectl.forward(
        program(tmp_path, LATE), tmp_path / "config", "demo", signing_key=KEY
    ) as url:
        answer = httpx2.get(f"{url}/healthz", trust_env=False, timeout=LIMIT)
        assert answer.status_code == 200


def test_a_kubectl_that_ends_before_an_answer_is_quoted(tmp_path: Path) -> None:
    ending = program(tmp_path, 'print(announced, flush=True)\nsys.exit("error: lost connection")\n')
    with PortForward(ending, context=None, namespace="demo") as opened:
        with pytest.raises(ForwardFailed) as caught:
            opened.wait_until_it_answers()
        assert str(caught.value) == (
            "cannot forward a port to service/jr2-orchestrator in namespace demo: kubectl "
            "port-forward: it ended\n  error: lost connection"
        )


def test_an_orchestrator_that_never_answers_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    silent = program(tmp_path, "print(announced, flush=True)\ntime.sleep(3600)\n")
    with PortForward(silent, context=None, namespace="demo") as opened:
        with pytest.raises(ForwardFailed, match="cannot forward a port"):
            opened.wait_until_it_answers(0.3)
        assert opened.alive
    assert not opened.alive


def test_what_answers_but_is_not_the_instance_gets_no_further(tmp_path: Path) -> None:
    with (
        pytest.raises(NotTheInstance, match="does not prove that it is the Instance's"),
        kubectl.forward(program(tmp_path, LATE), tmp_path / "config", "demo", signing_key="B" * 43),
    ):
        raise AssertionError("it was let through")
