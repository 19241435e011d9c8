"""A real API server without a node, and Instances that are converged to it.

For all that needs live objects and no running pod: refusals, rights, admission, dry runs, Node
objects made by hand. What needs pods lies in `tests/cluster`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from jr2_cli import tools
from tests.apiserver.server import LIGHT_CONTROLLERS, ApiServer

BIN = Path(sys.executable).parent


class StartApiServer(Protocol):
    """Starts an API server of the test's own; it ends with the test."""

    def __call__(
        self,
        *,
        context: str = "tests",
        feature_gates: Mapping[str, bool] | None = None,
        controllers: Sequence[str] = LIGHT_CONTROLLERS,
        flags: Sequence[str] = (),
    ) -> ApiServer: ...


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """One API server for the tests that keep to namespaces of their own."""
    server = ApiServer(tmp_path_factory.mktemp("apiserver"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def start_api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartApiServer]:
    """Start API servers of the test's own, for cluster-wide objects and other gates."""
    started: list[ApiServer] = []

    def start(
        *,
        context: str = "tests",
        feature_gates: Mapping[str, bool] | None = None,
        controllers: Sequence[str] = LIGHT_CONTROLLERS,
        flags: Sequence[str] = (),
    ) -> ApiServer:
        server = ApiServer(
            tmp_path_factory.mktemp("apiserver"),
            context=context,
            feature_gates=feature_gates,
            controllers=controllers,
            flags=flags,
        )
        started.append(server)
        server.start()
        return server

    try:
        yield start
    finally:
        for server in started:
            server.stop()


class Instance:
    """An Instance folder, and the commands that a person would type in it.

    Args:
        folder: the folder.
        name: the Instance's name, which is its namespace too.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name

    def write(self, path: str, text: str) -> None:
        """Write a file of the folder."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def jr2(
        self,
        *arguments: str,
        code: int,
        kubeconfig: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run `jr2` with no terminal to its end, and expect its exit code.

        Args:
            arguments: what is typed after `jr2`.
            code: the exit code.
            kubeconfig: the kubeconfig; none leads to no cluster.
            environment: variables beside the few that it always has.
        """
        keep = ("HOME", "LANG", "XDG_CACHE_HOME", "SSL_CERT_FILE", "UV_CACHE_DIR")
        done = subprocess.run(
            [str(BIN / "jr2"), *arguments],
            cwd=self.folder,
            env={
                **{key: os.environ[key] for key in keep if key in os.environ},
                "PATH": f"{BIN}:{os.environ['PATH']}",
                "KUBECONFIG": str(kubeconfig or self.folder / "no-kubeconfig"),
                **(environment or {}),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == code, f"jr2 {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
        return done

    def up(
        self,
        server: ApiServer,
        *arguments: str,
        code: int = 1,
        kubeconfig: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Converge to an API server and return what was said on stderr.

        A converge that gets as far as a rollout waits for pods that never run, so most tests
        expect the refusal or the error before it.
        """
        done = self.jr2(
            "up", "--context", server.context, "--yes", *arguments,
            code=code,
            kubeconfig=kubeconfig or server.kubeconfig,
            environment=environment,
        )  # fmt: skip
        return done.stderr


NewInstance = Callable[[str], Instance]


@pytest.fixture(scope="session")
def new_instance(tmp_path_factory: pytest.TempPathFactory) -> NewInstance:
    """Make an Instance folder by `jr2 init` and `uv sync`, as a person does."""

    def make(name: str) -> Instance:
        tools.require("kubectl")
        folder = tmp_path_factory.mktemp(name) / name
        folder.mkdir()
        instance = Instance(folder, name)
        instance.jr2("init", str(folder), "--name", name, code=0)
        done = subprocess.run(
            [str(BIN / "uv"), "sync", "--quiet"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return instance

    return make
