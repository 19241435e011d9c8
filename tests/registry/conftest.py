"""A real registry, with and without a login, over TLS, and behind a proxy that cuts.

The registry is the distribution project's own server, built once from its module and kept in a
cache of programs for tests.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import signal
import socket
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from jr2.errors import StepFailed
from jr2_cli.tools import catalogue, install, versions
from jr2_infra import oci
from jr2_infra.oci import media
from tests.ports import free_port
from tests.waiting import LIMIT, wait_for

PROGRAM = Path(__file__).parent / "program"
USER, PASSWORD = "ann", "CANARY-password"
# bcrypt of the password, of the least cost.
HTPASSWD = f"{USER}:$2a$04$6fFi14M8JhB3N/fOj5q.seQUk3XbcwxABEvzkOKNdX7dZYWvvLZFG\n"
_ATTEMPTS = 4
_LISTENS = "listening on "
"""What the registry says once it takes connections."""


class Voice:
    """Shows what the build of the registry says."""

    def line(self, text: str, *, code: str = "line") -> None:
        print(text)

    warning = line

    def progress(self, text: str | None) -> None:
        pass

    def confirm(self, question: str) -> bool:
        raise AssertionError(question)


@pytest.fixture(scope="session")
def registry_program() -> Path:
    """The registry, from the cache of programs for tests or built from its module."""
    sources = hashlib.sha256()
    for file in sorted(PROGRAM.iterdir()):
        sources.update(file.read_bytes())
    program = catalogue.Program(
        name="jr2-test-registry",
        version=f"3.1.2-{sources.hexdigest()[:12]}",
        module=catalogue.Module(name="registry", folder=PROGRAM),
        package=".",
        accepts=versions.Range(at_least="3", below="4"),
    )
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    # Apart from the tools: `jr2 tools prune` removes what it does not know.
    environ = {**os.environ, "XDG_CACHE_HOME": str(Path(home) / "jr2" / "tests")}
    try:
        (found,) = install.Installer(environ=environ, reporter=Voice(), sums={}).install([program])
    except StepFailed as error:
        pytest.skip(f"the registry cannot be built here: {error}")
    assert found.path is not None
    return found.path


class Registry:
    """A registry that runs.

    Args:
        program: the server.
        folder: where it keeps what it has.
        auth: its section `auth`.
        tls: its certificate and key.
    """

    def __init__(
        self,
        program: Path,
        folder: Path,
        *,
        auth: Mapping[str, Any] | None = None,
        tls: tuple[Path, Path] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._log = folder, folder / "log"
        for attempt in range(_ATTEMPTS):
            self.port = free_port()
            self.host = f"127.0.0.1:{self.port}"
            if self._listens(program, auth, tls):
                return
            # Another server can take a free port before ours listens on it.
            assert attempt + 1 < _ATTEMPTS, self.log()
            assert "address already in use" in self.log(), self.log()

    def _listens(
        self, program: Path, auth: Mapping[str, Any] | None, tls: tuple[Path, Path] | None
    ) -> bool:
        """Start it; tell whether it listens, or has ended."""
        http: dict[str, Any] = {"addr": self.host, "secret": "s", "relativeurls": True}
        if tls is not None:
            http["tls"] = {"certificate": str(tls[0]), "key": str(tls[1])}
        config = {
            "version": 0.1,
            "log": {"accesslog": {"disabled": False}, "level": "info"},
            "storage": {"filesystem": {"rootdirectory": str(self._folder / "data")}},
            "http": http,
            **({"auth": auth} if auth else {}),
        }
        (self._folder / "config.yaml").write_text(yaml.safe_dump(config))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [program, "serve", self._folder / "config.yaml"],
                env={"OTEL_TRACES_EXPORTER": "none", "PATH": "/usr/bin:/bin"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            # Its own word: on its port somebody else may answer.
            wait_for(
                "it listens",
                lambda: _LISTENS in self.log() or self._process.poll() is not None,
            )
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise
        return self._process.poll() is None

    def log(self) -> str:
        """Everything that it said."""
        return self._log.read_text()

    def requests(self, method: str) -> list[str]:
        """The paths that were asked for with a method, in their order."""
        found = [line.split('"') for line in self.log().splitlines() if f'"{method} ' in line]
        return [parts[1].split()[1] for parts in found if parts[1].startswith(method)]

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(LIMIT)


class Proxy:
    """A TCP proxy that cuts each connection.

    Args:
        port: the port behind it.
        sent: bytes towards the registry after which a connection is cut; `None` never.
        received: bytes towards the client after which a connection is cut; `None` never.
        times: how many connections are cut.
    """

    def __init__(
        self, port: int, *, sent: int | None = None, received: int | None = None, times: int = 3
    ) -> None:
        self._behind = port
        self._limits = (sent, received)
        self.cuts_left = times
        self.sent = 0
        """Bytes that went towards the registry."""
        self.received = 0
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.host = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self._start(self._accept)

    def _start(self, function: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=function, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(near)
            far = socket.create_connection(("127.0.0.1", self._behind))
            self._sockets.append(far)
            self._start(self._carry, near, far, 0)
            self._start(self._carry, far, near, 1)

    def _carry(self, source: socket.socket, target: socket.socket, way: int) -> None:
        carried, limit = 0, self._limits[way]
        with contextlib.suppress(OSError):
            while data := source.recv(64 * 1024):
                cuts = False
                if limit is not None and carried + len(data) >= limit:
                    with self._lock:
                        # Of two connections at their limits, one can have the last cut.
                        cuts = self.cuts_left > 0
                        self.cuts_left -= cuts
                    if cuts:
                        data = data[: max(0, limit - carried)]
                target.sendall(data)
                carried += len(data)
                with self._lock:
                    if way == 0:
                        self.sent += len(data)
                    else:
                        self.received += len(data)
                if cuts:
                    break
        near, far = (source, target) if way == 0 else (target, source)
        for end, how in ((far, socket.SHUT_RDWR), (near, socket.SHUT_WR)):
            with contextlib.suppress(OSError):
                end.shutdown(how)
        # Whoever still writes to an end that nobody reads would wait for as long as it has patience.
        with contextlib.suppress(OSError):
            while way == 0 and near.recv(64 * 1024):
                pass

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for end in self._sockets:
            # A close alone does not wake a thread that reads it, or that writes to a full window.
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(LIMIT)
            assert not thread.is_alive(), "a thread of the proxy does not end"
        for end in self._sockets:
            end.close()


StartRegistry = Callable[..., Registry]


@pytest.fixture
def start_registry(registry_program: Path, tmp_path: Path) -> Iterator[StartRegistry]:
    """Starts registries, which end with the test."""
    started: list[Registry] = []

    def start(**options: Any) -> Registry:
        registry = Registry(registry_program, tmp_path / f"registry-{len(started)}", **options)
        started.append(registry)
        return registry

    try:
        yield start
    finally:
        for registry in started:
            registry.close()


@pytest.fixture
def registry(start_registry: StartRegistry) -> Registry:
    """A registry without a login, in the clear."""
    return start_registry()


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment in which nobody is logged in."""
    return {"HOME": str(tmp_path / "home"), "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}


def logged_in(environ: Mapping[str, str], **content: Any) -> Path:
    """Write the config file of Docker."""
    path = Path(environ["HOME"]) / ".docker" / "config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


class Image:
    """Makes a layout: content by digest, and an index."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def blob(self, content: bytes, media_type: str) -> dict[str, Any]:
        digest = media.digest_of(content)
        self.blobs[digest] = content
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    def manifest(self, *layers: bytes, arch: str = "amd64") -> dict[str, Any]:
        config = {"architecture": arch, "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}
        value = {
            "schemaVersion": 2,
            "mediaType": media.OCI_MANIFEST,
            "config": self.blob(
                json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json"
            ),
            "layers": [
                self.blob(layer, "application/vnd.oci.image.layer.v1.tar") for layer in layers
            ],
        }
        described = self.blob(json.dumps(value).encode(), media.OCI_MANIFEST)
        return {**described, "platform": {"architecture": arch, "os": "linux"}}

    def index(self, *manifests: dict[str, Any]) -> dict[str, Any]:
        value = {
            "schemaVersion": 2,
            "mediaType": media.OCI_INDEX,
            "manifests": list(manifests),
        }
        return self.blob(json.dumps(value).encode(), media.OCI_INDEX)

    def files(self, *images: dict[str, Any]) -> dict[str, bytes]:
        index = {"schemaVersion": 2, "manifests": list(images)}
        found = {
            "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
            "index.json": json.dumps(index).encode(),
        }
        for digest, content in self.blobs.items():
            found[f"blobs/{digest.replace(':', '/')}"] = content
        return found

    def folder(self, path: Path, *images: dict[str, Any]) -> oci.Layout:
        for name, content in self.files(*images).items():
            file = path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return oci.Layout(path)

    def archive(self, path: Path, *images: dict[str, Any]) -> oci.Layout:
        with tarfile.open(path, "w") as tar:
            for name, content in self.files(*images).items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        return oci.Layout(path)


def ref(host: str, repository: str = "team/app", tag: str | None = "1") -> oci.Reference:
    return oci.Reference(registry=host, repository=repository, tag=tag)
