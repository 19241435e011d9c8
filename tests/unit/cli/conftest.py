"""The command as a person starts it, and the far sides that it speaks to.

`jr2` runs the command in this process, which is fast; `jr2_process` runs it in one of its own, for
what only a process shows. Both have streams that are no terminal and an empty home.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TextIO
from unittest import mock

import pytest

from jr2 import names, signed, wire
from jr2_cli import main
from tests.far_side import FarSide, Quiet
from tests.waiting import LIMIT


@dataclass(frozen=True, slots=True)
class Said:
    """What a finished command said."""

    code: int
    stdout: str
    stderr: str


class Jr2(Protocol):
    """Runs `jr2` with these arguments to its end; without `stdin` it is empty."""

    def __call__(
        self,
        *arguments: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
    ) -> Said: ...


def clean_environment(home: Path) -> dict[str, str]:
    """The environment of a command that finds nothing of this machine but its programs."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "KUBECONFIG": str(home / "no-kubeconfig"),
    }


@pytest.fixture
def empty_folder(tmp_path: Path) -> Path:
    """A folder that is in no Instance."""
    folder = tmp_path / "cwd"
    folder.mkdir()
    return folder


@contextlib.contextmanager
def _standard_input(content: bytes) -> Iterator[TextIO]:
    """Put a stream with this content where a process has its standard input, at descriptor 0."""
    before = os.dup(0)
    try:
        with tempfile.TemporaryFile() as file:
            file.write(content)
            file.seek(0)
            os.dup2(file.fileno(), 0)
        with open(0, encoding="utf-8", errors="strict", closefd=False) as stream:
            yield stream
    finally:
        os.dup2(before, 0)
        os.close(before)


@pytest.fixture
def jr2(
    tmp_path: Path,
    empty_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Jr2:
    """`jr2` in this process, in an empty folder, with an empty home."""

    def run(
        *arguments: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
    ) -> Said:
        environment = {**clean_environment(tmp_path), **(env or {})}
        # The whole environment comes back afterwards: the command fills it from `.env`.
        with (
            mock.patch.dict(os.environ, environment, clear=True),
            monkeypatch.context() as patched,
            _standard_input(stdin) as stream,
        ):
            patched.chdir(empty_folder if cwd is None else cwd)
            patched.setattr(sys, "stdin", stream)
            capfd.readouterr()
            code = main.main(arguments)
        said = capfd.readouterr()
        return Said(code, said.out, said.err)

    return run


@pytest.fixture
def jr2_process(tmp_path: Path, empty_folder: Path) -> Jr2:
    """`jr2` in a process of its own, in an empty folder, with an empty home."""

    def run(
        *arguments: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
    ) -> Said:
        done = subprocess.run(
            [sys.executable, "-m", "jr2_cli", *arguments],
            cwd=empty_folder if cwd is None else cwd,
            env={**clean_environment(tmp_path), **(env or {})},
            input=stdin,
            capture_output=True,
            timeout=LIMIT,
            check=False,
        )
        return Said(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


Frame = tuple[str, object]
"""The name and the value of one frame of a feed."""

RUN = "3f2a9c1e-7b44-4d0a-9a51-0c2f8d7e6b10"
OTHER_RUN = "3f2a0000-7b44-4d0a-9a51-0c2f8d7e6b11"
TOKEN = "CANARY-instance-token"
SIGNING_KEY = "CANARYsigningkeyCANARYsigningkeyCANARYsigni"
HASH = "87cddbde1271" + "0" * 52
NAMESPACE = "/api/v1/namespaces/my-instance"
DEPLOYMENT = "/apis/apps/v1/namespaces/my-instance/deployments/jr2-orchestrator"
SECRET = "/api/v1/namespaces/my-instance/secrets/jr2-instance"


def run_status(status: str = "active", **more: Any) -> dict[str, Any]:
    """A run as the Orchestrator shows it."""
    shown = wire.RunStatus.model_validate(
        {
            "runId": RUN,
            "workflow": "ping",
            "instanceId": "b1",
            "status": status,
            "value": "waiting",
            "assembly": HASH,
            **more,
        }
    )
    return shown.model_dump(mode="json", by_alias=True, exclude_none=True)


class FarOrchestrator:
    """An HTTP server that speaks as the Orchestrator does, and does what a test tells it.

    It is the API server of its cluster too: `objects` are what it holds, by path.

    `feeds` holds, for each connection to a run's feed in turn, the frames that it gets before the
    server closes it; the last entry serves every later connection.
    """

    def __init__(self) -> None:
        self.health = wire.Health(version=names.KIT_VERSION, hash=HASH)
        self.runs: dict[str, dict[str, Any]] = {RUN: run_status()}
        self.feeds: list[list[Frame]] = []
        self.answers: dict[tuple[str, str], tuple[int, object]] = {}
        self.asked: list[tuple[str, str, object]] = []
        self.tokens: list[str | None] = []
        self.keys: list[str | None] = []
        """The `Idempotency-Key` of each write."""
        self.signing_key: str | None = SIGNING_KEY
        """What a nonce is signed with; `None` signs none, as an older Orchestrator."""
        self.lost = 0
        """How many of the next writes are taken without an answer."""
        self.lost_reads = 0
        """How many of the next reads are cut in the middle of their answer."""
        self.busy_after_loss = 0
        """How many writes or reads after those are answered with 503."""
        self.objects: dict[str, dict[str, Any]] = {}
        outer = self

        class Handler(Quiet):
            def do_GET(self) -> None:
                outer._get(self)

            def do_POST(self) -> None:
                outer._post(self)

        self._server = FarSide(Handler)
        self.port, self.url = self._server.port, self._server.url

    def close(self) -> None:
        self._server.close()

    def _get(self, request: Quiet) -> None:
        path, _, query = request.path.partition("?")
        self.asked.append(("GET", request.path, None))
        if path == "/healthz":
            health = self.health
            nonce = request.headers.get(names.HEADER_NONCE)
            if nonce is not None and self.signing_key is not None:
                proof = signed.proof(signed.read_key(self.signing_key), nonce)
                health = health.model_copy(update={"proof": proof})
            self._send(request, 200, health.model_dump(mode="json", by_alias=True))
        elif path.startswith(("/api/", "/apis/", "/version")):
            found = self.objects.get(path)
            self._send(request, 200 if found else 404, found or {"message": f"no {path}"})
        elif not self._allowed(request):
            return
        elif self.lost_reads:
            self.lost_reads -= 1
            request.send_response(200)
            request.send_header("Content-Length", "9")
            request.end_headers()
            request.wfile.write(b"{")
            request.close_connection = True
        elif self.busy_after_loss:
            self.busy_after_loss -= 1
            self._send(request, 503, {"error": "the worker is away"})
        elif ("GET", path) in self.answers:
            self._send(request, *self.answers[("GET", path)])
        elif path == "/workflows":
            self._send(request, 200, ["ping", "review"])
        elif path == "/runs":
            self._send(request, 200, list(self.runs.values()))
        elif path == "/runs/resolve":
            prefix = query.removeprefix("prefix=")
            found_ids = sorted(run for run in self.runs if run.startswith(prefix))
            answer = wire.Resolved(prefix=prefix, run_ids=found_ids, truncated=False)
            self._send(request, 200, answer.model_dump(mode="json", by_alias=True))
        elif path.removeprefix("/runs/").removesuffix("/events") not in self.runs:
            self._send(request, 404, {"error": f"no route {path}"})
        elif path.endswith("/events"):
            self._feed(request)
        else:
            self._send(request, 200, self.runs[path.removeprefix("/runs/")])

    def _post(self, request: Quiet) -> None:
        body = json.loads(request.body())
        self.asked.append(("POST", request.path, body))
        self.keys.append(request.headers.get(names.HEADER_IDEMPOTENCY_KEY))
        if not self._allowed(request):
            return
        if self.lost:
            self.lost -= 1
            request.close_connection = True
            return
        if self.busy_after_loss:
            self.busy_after_loss -= 1
            self._send(request, 503, {"error": "the worker is away"})
            return
        if ("POST", request.path) in self.answers:
            self._send(request, *self.answers[("POST", request.path)])
        elif request.path == "/workflows/ping/runs":
            started = wire.RunStarted(run_id=RUN, instance_id="b1")
            self._send(request, 201, started.model_dump(mode="json", by_alias=True))
        elif request.path.startswith("/workflows/"):
            self._send(request, 404, {"error": 'no workflow "pnig" (ping)'})
        else:
            self._send(request, 200, {"ok": True})

    def _allowed(self, request: Quiet) -> bool:
        given = request.headers.get("Authorization")
        self.tokens.append(given)
        if given == f"Bearer {TOKEN}":
            return True
        self._send(request, 401, {"error": "unauthorized"})
        return False

    def _feed(self, request: Quiet) -> None:
        frames = self.feeds.pop(0) if len(self.feeds) > 1 else self.feeds[0]
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.end_headers()
        request.wfile.write(b": silent\n\n")
        for name, value in frames:
            request.wfile.write(f"event: {name}\ndata: {json.dumps(value)}\n\n".encode())
        request.wfile.flush()

    @staticmethod
    def _send(request: Quiet, status: int, value: object) -> None:
        request.reply(status, value, {"Content-Type": "application/json"})


@pytest.fixture
def far() -> Iterator[FarOrchestrator]:
    """An Orchestrator that a test makes answer."""
    server = FarOrchestrator()
    yield server
    server.close()


@pytest.fixture
def at(far: FarOrchestrator) -> dict[str, str]:
    """The environment that names the far Orchestrator, and its token."""
    return {names.ENV_URL: far.url, names.ENV_TOKEN: TOKEN}


FAR_KUBECTL = """#!{python}
import os, sys, time
folder = os.path.dirname(__file__)
if sys.argv[1] == "version":
    print("Client Version: v1.36.3")
    sys.exit(0)
with open(os.path.join(folder, "started"), "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\\n")
with open(os.path.join(folder, "says")) as says:
    exec(says.read())
"""


class FarKubectl:
    """A program that stands for kubectl; what it does after its start is a line of Python."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "kubectl"
        self.path.write_text(FAR_KUBECTL.format(python=sys.executable))
        self.path.chmod(0o755)
        self._folder = folder

    def does(self, code: str) -> None:
        (self._folder / "says").write_text(code)

    def forwards(self, port: int) -> None:
        """Announce the port, as kubectl does, and stay."""
        self.does(
            f'print("Forwarding from 127.0.0.1:{port} -> 4000", flush=True)\ntime.sleep(3600)\n'
        )

    @property
    def started(self) -> list[str]:
        """The arguments of each start but those that asked for the version."""
        log = self._folder / "started"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def kubectl(tmp_path: Path) -> FarKubectl:
    """A kubectl that a test makes act."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return FarKubectl(folder)


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    """An Instance folder whose environment is the one that the tests run in."""
    root = tmp_path / "my-instance"
    (root / "workflows").mkdir(parents=True)
    (root / ".venv").symlink_to(sys.prefix)
    (root / "jr2_config.py").write_text("from jr2.config import Config\n\nconfig = Config()\n")
    (root / "pyproject.toml").write_text(
        "[project]\n"
        'name = "my-instance"\n'
        'version = "0"\n'
        f'dependencies = ["jr2=={names.KIT_VERSION}"]\n'
        "[dependency-groups]\n"
        f'dev = ["jr2-cli=={names.KIT_VERSION}"]\n'
    )
    return root


@pytest.fixture
def in_cluster(far: FarOrchestrator, kubectl: FarKubectl, tmp_path: Path) -> dict[str, str]:
    """The environment of a machine whose current context leads to the far Orchestrator."""
    kubectl.forwards(far.port)
    far.objects[SECRET] = {
        "data": {
            names.KEY_INSTANCE_TOKEN: base64.b64encode(TOKEN.encode()).decode(),
            names.KEY_SIGNING_KEY: base64.b64encode(SIGNING_KEY.encode()).decode(),
        },
    }
    far.objects[DEPLOYMENT] = {
        "spec": {"template": {"spec": {"containers": [{"image": "orchestrator:1"}]}}},
        "status": {"readyReplicas": 1},
    }
    config = tmp_path / "kubeconfig"
    config.write_text(
        json.dumps(
            {
                "current-context": "kind-jr2",
                "clusters": [{"name": "far", "cluster": {"server": far.url}}],
                "contexts": [
                    {"name": "kind-jr2", "context": {"cluster": "far"}},
                    {"name": "away", "context": {"cluster": "nowhere"}},
                ],
            }
        )
    )
    path = f"{kubectl.path.parent}:{os.environ['PATH']}"
    return {"KUBECONFIG": str(config), "PATH": path}
