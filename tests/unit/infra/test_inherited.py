"""What `.env` filled stays in the command: a canary looks for it in what the command starts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from jr2_infra import inherited, kube_auth, processes
from jr2_infra.kube import KubeContext

SHOW = "import json, os, sys; json.dump(dict(os.environ), open(sys.argv[1], 'w'))"


@pytest.fixture(autouse=True)
def from_env_file(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An environment with one value of `.env` and one of the person's shell."""
    monkeypatch.setenv("MODEL_KEY", "CANARY")
    monkeypatch.setenv("AWS_PROFILE", "team")
    inherited.withhold(["MODEL_KEY", "KUBECONFIG"])
    yield
    inherited.withhold([])


def is_without_canary(environment: Mapping[str, str]) -> bool:
    return environment["AWS_PROFILE"] == "team" and "CANARY" not in environment.values()


def test_a_program_gets_what_the_person_exported(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    processes.run([sys.executable, "-c", SHOW, str(seen)])
    assert is_without_canary(json.loads(seen.read_text()))

    with processes.start([sys.executable, "-c", SHOW, str(seen)]) as child:
        child.communicate()
    assert is_without_canary(json.loads(seen.read_text()))


def test_an_exec_plugin_of_the_kubeconfig_gets_none_of_it(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    answer = {"status": {"token": "t"}}
    body = f"{SHOW}; print({json.dumps(json.dumps(answer))})"
    plugin: dict[str, Any] = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", body, str(seen)],
    }
    context = KubeContext(
        name="c", server="https://127.0.0.1:1", namespace="demo", cluster={}, user={"exec": plugin}
    )

    kube_auth._credential(context)

    assert is_without_canary(json.loads(seen.read_text()))


def test_a_program_looks_for_the_kubeconfig_where_the_command_does() -> None:
    assert inherited.environment({"KUBECONFIG": "/theirs"}) == {"KUBECONFIG": "/theirs"}
