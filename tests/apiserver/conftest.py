"""A real API server without a node, and Instances that are converged to it.

For all that needs live objects and no running pod: refusals, rights, admission, dry runs, Node
objects made by hand. What needs pods lies in `tests/cluster`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from jr2_cli import tools
from tests.apiserver.server import WITHOUT_POD_RESOURCES, ApiServer
from tests.apiserver.warm import Warm, warm
from tests.waiting import LIMIT

BIN = Path(sys.executable).parent
CHECKER = """#!/bin/sh
grep -q "a type error" workflows/ping.py || exit 0
echo 'workflows/ping.py:1:1: error[invalid-assignment] not a number'
exit 1
"""
"""Stands for the Instance's own checker: another program of the Instance's, and not of ours."""


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """One API server for the tests that keep to namespaces of their own.

    What the Instances of a cluster share stands there as jr2 applied it last: a test may apply it
    again, and changes or deletes it on a server of its own (`own_server`).
    """
    with ApiServer(tmp_path_factory.mktemp("apiserver")) as server:
        yield server


@pytest.fixture(scope="session")
def api_server_without_pod_resources(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ApiServer]:
    """An API server that drops pod-level resources, as they are behind a gate that is off."""
    folder = tmp_path_factory.mktemp("without")
    with ApiServer(folder, feature_gates=WITHOUT_POD_RESOURCES) as server:
        yield server


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server of the module's own, for what changes the whole cluster."""
    with ApiServer(tmp_path_factory.mktemp("own")) as server:
        yield server


class Instance:
    """An Instance folder, and the commands that a person would type in it.

    Args:
        folder: the folder.
        name: the Instance's name, which is its namespace too.
        warm: its command, loaded.
    """

    def __init__(self, folder: Path, name: str, warm: Warm) -> None:
        self.folder = folder
        self.name = name
        self._warm = warm

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
        variables = {
            **plain_environment(),
            "KUBECONFIG": str(kubeconfig or self.folder / "no-kubeconfig"),
            **(environment or {}),
        }
        if (self.folder / ".venv").exists():
            done = self._warm.run(arguments, cwd=self.folder, environment=variables)
        else:
            done = typed(arguments, cwd=self.folder, environment=variables)
        assert done.returncode == code, f"jr2 {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
        return done

    def up(
        self,
        server: ApiServer,
        *arguments: str,
        code: int = 1,
        context: str | None = None,
        kubeconfig: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Converge to an API server and return what was said on stderr.

        A converge that gets as far as a rollout waits for pods that never run, so most tests
        expect the refusal or the error before it.
        """
        done = self.jr2(
            "up", "--context", context or server.context, "--yes", *arguments,
            code=code,
            kubeconfig=kubeconfig or server.kubeconfig,
            environment=environment,
        )  # fmt: skip
        return done.stderr


def plain_environment() -> dict[str, str]:
    """Return the few variables that a command always has."""
    keep = ("HOME", "LANG", "XDG_CACHE_HOME", "SSL_CERT_FILE", "UV_CACHE_DIR")
    return {
        **{key: os.environ[key] for key in keep if key in os.environ},
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }


def typed(
    arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run `jr2` from its start to its end."""
    return subprocess.run(
        [str(BIN / "jr2"), *arguments],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )


@pytest.fixture(scope="session")
def first_instance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An Instance folder made by `jr2 init` and `uv sync`, as a person makes it.

    Its checker is a stand-in that takes no time; what checkers say is shown elsewhere.
    """
    folder = tmp_path_factory.mktemp("first") / "first"
    folder.mkdir()
    made = typed(["init", str(folder)], cwd=folder, environment=plain_environment())
    assert made.returncode == 0, made.stderr
    done = subprocess.run(
        [str(BIN / "uv"), "sync", "--quiet"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    checker = folder / ".venv" / "bin" / "ty"
    checker.write_text(CHECKER)
    checker.chmod(0o755)
    pyproject = folder / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace('"mypy"\n', '"ty"\n'))
    return folder


@pytest.fixture(scope="session")
def warm_command(first_instance: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """The Instances' own command, loaded once."""
    with warm(first_instance / ".venv", tmp_path_factory.mktemp("warm")) as made:
        yield made


NewInstance = Callable[[str], Instance]


@pytest.fixture(scope="session")
def new_instance(
    first_instance: Path, warm_command: Warm, tmp_path_factory: pytest.TempPathFactory
) -> NewInstance:
    """Make an Instance folder of a name; all share one environment."""

    def make(name: str) -> Instance:
        tools.require("kubectl")
        folder = tmp_path_factory.mktemp(name) / name
        shutil.copytree(first_instance, folder, ignore=shutil.ignore_patterns(".venv"))
        (folder / ".venv").symlink_to(first_instance / ".venv")
        config = folder / "jr2_config.py"
        config.write_text(config.read_text().replace('name="first"', f'name="{name}"'))
        return Instance(folder, name, warm_command)

    return make
