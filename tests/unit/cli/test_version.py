"""`jr2 version`: its rows, its JSON, and that it never refuses."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import jr2 as kit_package
import jr2_cli
from jr2 import names, wire
from jr2_cli import versions
from tests.unit.cli.conftest import DEPLOYMENT, HASH

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FarKubectl, FarOrchestrator, Jr2

CLI = Path(jr2_cli.__file__).resolve().parent
KIT = Path(kit_package.__file__).resolve().parent
V = names.KIT_VERSION


def kit(**more: object) -> versions.Kit:
    values = {
        "version": V,
        "path": "/i/jr2",
        "against_version": V,
        "against_path": "/i/jr2",
        "agrees": True,
        "pinned": V,
    }
    return versions.Kit(**{**values, **more})  # type: ignore[arg-type]  # values of a test


def report(
    one: versions.Kit | None = None, deployed: versions.Deployed | None = None
) -> versions.Report:
    return versions.Report(
        version=V,
        path="/i/jr2_cli",
        python="3.11.2",
        handed_off_from=f"{V} /global/jr2_cli",
        instance=versions.Instance(
            name="my-instance",
            root="/i",
            kit=one or kit(),
            checkout=None,
            registry=names.KIT_HOME,
        ),
        deployed=deployed,
    )


def test_the_rows_of_an_installed_instance() -> None:
    deployed = versions.Deployed(
        context="kind-jr2",
        namespace="my-instance",
        orchestrator=versions.Orchestrator(version="0.9.0", hash=HASH, image="r/jr2:0.9.0"),
        operator=versions.Operator(version="0.9.0", image="r/op:0.9.0"),
    )

    assert versions.rows(report(deployed=deployed)).splitlines() == [
        f"cli:          {V} /i/jr2_cli",
        f"global:       {V} /global/jr2_cli",
        f"kit:          {V} /i/jr2 ok",
        "instance:     my-instance /i (installed kit → ghcr.io/snapwich)",
        "python:       3.11.2",
        "",
        "orchestrator: assembly 87cddbde1271 r/jr2:0.9.0",
        "operator:     0.9.0 r/op:0.9.0",
        "skew:         deployed predates this kit — `jr2 up` converges it",
    ]


@pytest.mark.parametrize(
    ("one", "row"),
    [
        (
            kit(agrees=False, against_path="/g/jr2"),
            f"kit:          {V} /i/jr2 MISMATCH — this jr2 ({V}) runs against {V} (/g/jr2)",
        ),
        (kit(version=None, path=None, agrees=False, pinned=None), "kit:          not installed"),
        (
            kit(pinned="9.9.9"),
            f"kit:          {V} /i/jr2 ok; pyproject.toml pins 9.9.9 — reinstall",
        ),
    ],
)
def test_the_row_of_the_kit(one: versions.Kit, row: str) -> None:
    assert versions.rows(report(one)).splitlines()[2] == row


@pytest.mark.parametrize(
    ("deployed", "skew"),
    [
        ("1.0.0", "same"),
        ("0.9.9", "behind"),
        ("1.0.1", "ahead"),
        ("1.10.0", "ahead"),
        (None, "unknown"),
    ],
)
def test_skew(deployed: str | None, skew: versions.Skew) -> None:
    assert versions.compare(deployed, "1.0.0") == skew


def test_a_newer_instance_is_not_said_to_be_converged() -> None:
    newer = versions.Deployed(orchestrator=versions.Orchestrator(version="99.0.0", hash=None))

    assert versions.rows(report(deployed=newer)).splitlines()[-2:] == [
        "orchestrator: no assembly jr2 99.0.0",
        "skew:         deployed is newer than this kit — `jr2 up` would roll the orchestrator "
        "back; the operator is never downgraded",
    ]


@pytest.mark.parametrize("word", ["version", "--version"])
def test_outside_an_instance_the_command_is_all_there_is(jr2: Jr2, word: str) -> None:
    said = jr2(word)

    assert (said.code, said.stderr) == (0, "")
    assert said.stdout.splitlines() == [
        f"cli:          {V} {CLI}",
        f"python:       {platform.python_version()}",
    ]


def test_in_an_instance_the_kit_and_what_the_cluster_runs(
    jr2: Jr2, instance: Path, in_cluster: dict[str, str], far: FarOrchestrator
) -> None:
    far.objects["/apis/apps/v1/namespaces/my-instance/deployments/jr2-orchestrator"] = {
        "spec": {"template": {"spec": {"containers": [{"image": "jr2.local/orchestrator:1"}]}}}
    }
    far.objects["/apis/apps/v1/namespaces/jr2-system/deployments/jr2-controller-manager"] = {
        "metadata": {"labels": {names.LABEL_VERSION: V}},
        "spec": {"template": {"spec": {"containers": [{"image": "jr2.local/operator:1"}]}}},
    }

    said = jr2("version", "--json", cwd=instance, env=in_cluster)

    found = json.loads(said.stdout)
    assert (said.code, said.stderr) == (0, "")
    assert found["kit"] == {"version": V, "path": str(KIT), "pinned": V, "check": "ok"}
    assert found["instance"]["name"] == "my-instance"
    assert found["deployed"] == {
        "context": "kind-jr2",
        "namespace": "my-instance",
        "orchestrator": {"version": V, "hash": HASH, "image": "jr2.local/orchestrator:1"},
        "operator": {"version": V, "image": "jr2.local/operator:1"},
    }
    assert found["skew"] == "same"
    # `/healthz` is open to all: no token leaves the machine for it.
    assert far.tokens == []


def test_what_cannot_be_asked_is_a_word_in_its_row(
    jr2: Jr2,
    instance: Path,
    in_cluster: dict[str, str],
    kubectl: FarKubectl,
    far: FarOrchestrator,
) -> None:
    del far.objects[DEPLOYMENT]
    nowhere = jr2("version", cwd=instance, env=in_cluster)
    no_context = jr2("version", cwd=instance)
    url = jr2("version", "--url", "http://127.0.0.1:1")

    assert (nowhere.code, no_context.code, url.code) == (0, 0, 0)
    assert nowhere.stdout.splitlines()[-2:] == [
        "orchestrator: not deployed",
        "operator:     not deployed",
    ]
    assert "\norchestrator: no kube context — " in no_context.stdout
    assert "\norchestrator: cannot reach the Orchestrator at http://127.0.0.1:1" in url.stdout
    assert kubectl.started == []


def test_a_config_that_does_not_load_is_a_row(jr2: Jr2, instance: Path) -> None:
    (instance / "jr2_config.py").write_text("config = 1\n")

    said = jr2("version", "--local", cwd=instance)

    assert said.code == 0
    assert any(line.startswith("config:       ") for line in said.stdout.splitlines())


def test_a_pyproject_that_cannot_be_read_is_a_row(jr2: Jr2, instance: Path) -> None:
    (instance / "pyproject.toml").write_text("[project")

    said = jr2("version", "--local", cwd=instance)

    assert (said.code, said.stderr) == (0, "")
    rows = dict(line.split(":", 1) for line in said.stdout.splitlines())
    assert rows["kit"].endswith(" ok")
    assert f"{instance / 'pyproject.toml'} is not TOML: " in rows["config"]


def test_an_instance_of_another_kit_is_shown_and_not_refused(jr2: Jr2, instance: Path) -> None:
    (instance / ".venv").unlink()

    said = jr2("version", "--local", cwd=instance)

    assert said.code == 0
    assert "kit:          not installed; pyproject.toml pins" in said.stdout


def test_a_deployed_version_that_differs_shows_in_the_rows(jr2: Jr2, far: FarOrchestrator) -> None:
    far.health = wire.Health(version="0.1.0", hash=HASH)

    said = jr2("version", "--url", far.url)

    assert said.stdout.splitlines()[-2:] == [
        "orchestrator: assembly 87cddbde1271 jr2 0.1.0",
        "skew:         deployed predates this kit — `jr2 up` converges it",
    ]
