"""One real cluster and one Instance at a time: what the cluster tests stand on.

The local cluster and the Kit images are made by `scripts/test` before; the fixtures here only ask
for them, so that a single test can be run by hand.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jr2 import names
from jr2_cli import tools
from tests.waiting import LIMIT, wait_for

from .head_start import give_head_start

CHECKOUT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
CONTEXT = names.LOCAL_CONTEXT


class Instance:
    """An Instance folder and the commands that a person would type in it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.kubectl_path = tools.require("kubectl")

    def environment(self, **more: str) -> dict[str, str]:
        keep = ("HOME", "LANG", "XDG_CACHE_HOME", "KUBECONFIG", "SSL_CERT_FILE", "UV_CACHE_DIR")
        own = {key: os.environ[key] for key in keep if key in os.environ}
        return {**own, "PATH": f"{BIN}:{os.environ['PATH']}", **more}

    def start(
        self, *arguments: str, environment: dict[str, str] | None = None
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(BIN / "jr2"), *arguments],
            cwd=self.folder,
            env=self.environment(**(environment or {})),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def jr2(
        self, *arguments: str, code: int = 0, environment: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `jr2` to its end and expect its exit code."""
        child = self.start(*arguments, environment=environment)
        out, err = child.communicate(timeout=400)
        assert child.returncode == code, f"jr2 {' '.join(arguments)}\n{out}\n{err}"
        return subprocess.CompletedProcess(arguments, child.returncode, out, err)

    def up(self, *arguments: str, code: int = 0, environment: dict[str, str] | None = None) -> str:
        """Converge and return what was said on stderr."""
        done = self.jr2(
            "up", "--context", CONTEXT, "--yes", *arguments, code=code, environment=environment
        )
        return done.stderr

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            [str(self.kubectl_path), "--context", CONTEXT, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def get(self, *arguments: str) -> Any:
        """Return what `kubectl get` in the Instance's namespace gives as JSON."""
        return json.loads(self.kubectl("-n", self.name, "get", *arguments, "-o", "json"))

    def pod(self) -> Any:
        """Return the Orchestrator's one live pod."""

        def live() -> Any:
            pods = [
                pod
                for pod in self.get("pods", "-l", f"app={names.ORCHESTRATOR}")["items"]
                if "deletionTimestamp" not in pod["metadata"]
            ]
            return pods[0] if len(pods) == 1 else None

        return wait_for("one live pod of the Orchestrator", live)

    def wait_until_ready(self, restarts: int = 0) -> None:
        """Wait until the Orchestrator's one live pod is ready, as the kubelet says it of this pod.

        Its Deployment says so a moment later, and for a moment still of the pod of before.

        Args:
            restarts: how often its containers have been started again at the least.
        """

        def is_ready() -> bool:
            status = self.pod()["status"]
            ready = any(
                one["type"] == "Ready" and one["status"] == "True"
                for one in status.get("conditions") or []
            )
            counts = [one["restartCount"] for one in status.get("containerStatuses") or []]
            return ready and sum(counts) >= restarts

        wait_for("the Orchestrator is ready", is_ready)

    def pod_identity(self) -> tuple[str, tuple[int, ...]]:
        """Return the Orchestrator pod's uid and the restart counts of its containers."""
        pod = self.pod()
        counts = sorted((c["name"], c["restartCount"]) for c in pod["status"]["containerStatuses"])
        return pod["metadata"]["uid"], tuple(count for _, count in counts)

    def secret(self, key: str) -> str:
        data = self.get("secret", names.INSTANCE_SECRET)["data"]
        return base64.b64decode(data[key]).decode()

    @contextlib.contextmanager
    def forward(self, port: int | None = None) -> Iterator[httpx2.Client]:
        """A client of the Orchestrator through one `kubectl port-forward`, with the token.

        Args:
            port: of this machine; `None` takes any.
        """
        child = subprocess.Popen(
            [
                str(self.kubectl_path), "--context", CONTEXT, "-n", self.name, "port-forward",
                f"service/{names.ORCHESTRATOR}", f"{port or ''}:{names.ORCHESTRATOR_PORT}",
                "--address", "127.0.0.1",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip
        try:
            assert child.stdout is not None
            said, found = "", None
            # kubectl may have something else to say before.
            while found is None:
                line = child.stdout.readline()
                said += line
                assert line, said
                found = re.search(r"Forwarding from 127\.0\.0\.1:(\d+)", line)
            with httpx2.Client(
                base_url=f"http://127.0.0.1:{found[1]}",
                headers={"Authorization": f"Bearer {self.secret(names.KEY_INSTANCE_TOKEN)}"},
                timeout=LIMIT,
                trust_env=False,
            ) as client:
                yield client
        finally:
            child.terminate()
            child.wait(timeout=LIMIT)
            if child.stdout is not None:
                child.stdout.close()

    def write(self, path: str, text: str) -> None:
        (self.folder / path).write_text(text)

    def sync(self) -> None:
        """Lock and install, as a person does after an edit of `pyproject.toml`."""
        done = subprocess.run(
            [str(BIN / "uv"), "sync", "--quiet"],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def local_cluster() -> str:
    """The context of the running local cluster; made when there is none."""
    done = subprocess.run(
        [str(BIN / "jr2"), "cluster", "create"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return CONTEXT


@pytest.fixture(scope="session")
def kit_images(local_cluster: str) -> None:
    """The Kit images of this checkout, built when they are not there."""
    done = subprocess.run(
        [str(CHECKOUT / "scripts" / "build-kit-images")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def new_instance(
    kit_images: None, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Instance]:
    """Make an Instance folder by `jr2 init` and `uv sync`."""
    made: list[Path] = []

    def make(name: str) -> Instance:
        folder = tmp_path_factory.mktemp(name) / name
        instance = Instance(folder, name)
        folder.mkdir()
        instance.jr2("init", str(folder), "--name", name)
        instance.sync()
        if made:
            give_head_start(folder, made[-1])
        made.append(folder)
        return instance

    return make


class Departures:
    """Instances that are removed by `jr2 down` while the next tests begin."""

    def __init__(self) -> None:
        self._leaving: list[tuple[Instance, subprocess.Popen[str]]] = []

    def __call__(self, instance: Instance) -> None:
        """Begin to remove an Instance."""
        self._leaving.append((instance, instance.start("down", "--context", CONTEXT, "--yes")))

    def wait(self) -> None:
        """Wait until all of them are gone, and expect that each removal ended well."""
        failed = []
        while self._leaving:
            instance, child = self._leaving.pop()
            out, err = child.communicate(timeout=400)
            if child.returncode != 0:
                failed.append(f"jr2 down of {instance.name}: {child.returncode}\n{out}\n{err}")
        assert not failed, "\n".join(failed)


@pytest.fixture(scope="session")
def depart(local_cluster: str) -> Iterator[Departures]:
    """Removes an Instance beside the next tests; what did not end well fails the last test."""
    departures = Departures()
    yield departures
    departures.wait()


@pytest.fixture
def pulumi_must_not_run(tmp_path: Path) -> dict[str, str]:
    """An environment in which the engine answers its version and fails at anything else.

    A converge that ends well in it was proved without the engine.
    """
    real = tools.require("pulumi")
    folder = tmp_path / "no-engine"
    folder.mkdir()
    script = folder / "pulumi"
    script.write_text(
        f'#!/bin/sh\n[ "$1" = version ] && exec {real} version\n'
        'echo "the engine was started: $*" >&2\nexit 97\n'
    )
    script.chmod(0o755)
    return {"PATH": f"{folder}:{BIN}:{os.environ['PATH']}"}


class HeldPublish:
    """An environment in which a publish stands still until it is let go.

    Its `kubectl` is the real one, but for `port-forward`, which waits for a file.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "go"
        script = folder / "kubectl"
        script.write_text(
            "#!/bin/sh\n"
            f'case "$*" in *port-forward*) while [ ! -e {self._file} ]; do sleep 0.1; done;; esac\n'
            f'exec {tools.require("kubectl")} "$@"\n'
        )
        script.chmod(0o755)
        self.environment = {"PATH": f"{folder}:{BIN}:{os.environ['PATH']}"}

    def let_go(self) -> None:
        """Let the publish go on."""
        self._file.touch()


@pytest.fixture
def held_publish(tmp_path: Path) -> HeldPublish:
    """A publish that stands still, so that a converge is surely in its middle."""
    folder = tmp_path / "held"
    folder.mkdir()
    return HeldPublish(folder)
