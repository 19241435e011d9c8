"""What the engine finds: files of its own, and an environment that was written down."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from jr2_infra import inherited
from jr2_infra.derived import Sealer
from jr2_infra.engine.environment import RunPaths, environment, write_files
from jr2_infra.resources import Program
from jr2_infra.tooling import Tooling

PROGRAM = Program(project="jr2", stack="demo.0123456789ab", components=())


@pytest.fixture(autouse=True)
def nothing_withheld() -> Iterator[None]:
    yield
    inherited.withhold([])


@pytest.fixture(scope="module")
def sealer() -> Sealer:
    return Sealer()


@pytest.fixture
def paths(tmp_path: Path, sealer: Sealer) -> RunPaths:
    made = RunPaths(folder=tmp_path)
    plugin = tmp_path / "the-plugin"
    plugin.touch()
    tooling = Tooling(pulumi=Path("/p"), kubernetes_plugin=plugin, kubectl=Path("/k"))
    write_files(made, PROGRAM, {"version": 3}, sealer, tooling, "kubeconfig text")
    return made


def test_files_lie_where_the_engine_looks_and_only_we_read_them(
    paths: RunPaths, sealer: Sealer
) -> None:
    backend = paths.state / ".pulumi"
    plugins = paths.home / "plugins"

    assert json.loads((backend / "stacks/jr2/demo.0123456789ab.json").read_text()) == {"version": 3}
    assert (backend / "meta.yaml").read_text() == "version: 1\n"
    assert yaml.safe_load((paths.project / "Pulumi.yaml").read_text())["name"] == "jr2"
    settings = yaml.safe_load((paths.project / "Pulumi.demo.0123456789ab.yaml").read_text())
    assert settings == {"encryptionsalt": sealer.salt}
    plugin = plugins / "resource-kubernetes-v4.34.2" / "pulumi-resource-kubernetes"
    assert plugin.resolve() == paths.folder / "the-plugin"
    assert paths.kubeconfig.read_text() == "kubeconfig text"
    made = (paths.kubeconfig, *backend.rglob("*"), *paths.project.iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in made if path.is_file()} == {0}
    texts = [path.read_text() for path in paths.folder.rglob("*") if path.is_file()]
    assert not [text for text in texts if sealer.passphrase in text]


def test_the_dynamic_plugin_runs_our_own_interpreter(paths: RunPaths) -> None:
    """It says its port first, and nothing else on standard output."""
    script = paths.home / "plugins/resource-pulumi-python-v3.272.0/pulumi-resource-pulumi-python"
    with subprocess.Popen(
        [script, "127.0.0.1:1"], stdout=subprocess.PIPE, text=True, env={"PATH": "/usr/bin:/bin"}
    ) as process:
        assert process.stdout is not None
        port = process.stdout.readline()
        running = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
        process.kill()

    assert port.strip().isdigit()
    assert running[:2] == [os.fsencode(sys.executable), b"-I"]


def test_the_environment_is_ours(paths: RunPaths, sealer: Sealer) -> None:
    person = {
        "PATH": "/usr/bin",
        "HOME": "/home/me",
        "AWS_PROFILE": "team",
        "KUBECONFIG": "/home/me/.kube/config",
        "PULUMI_ACCESS_TOKEN": "CANARY",
        "PULUMI_BACKEND_URL": "s3://theirs",
        "PYTHONPATH": "/evil",
        "JR2_TOKEN": "CANARY",
    }

    found = environment(paths, sealer, person)

    assert "CANARY" not in json.dumps(found)
    assert "PYTHONPATH" not in found
    assert found["AWS_PROFILE"] == "team"
    assert found["KUBECONFIG"] == str(paths.kubeconfig)
    assert found["PULUMI_BACKEND_URL"] == f"file://{paths.state}"
    assert found["PULUMI_CONFIG_PASSPHRASE"] == sealer.passphrase
    inherited.withhold(["AWS_PROFILE"])
    assert "AWS_PROFILE" not in environment(paths, sealer, person)
    for name in (
        "PULUMI_SKIP_UPDATE_CHECK",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION",
        "PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE",
        "PULUMI_K8S_ENABLE_SECRET_MUTABLE",
        "PULUMI_K8S_UPSERT_EXISTING_OBJECTS",
    ):
        assert found[name] == "true"
