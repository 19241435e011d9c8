"""The same converge through `kind load`, with recording stand-ins for `kind` and `docker`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jr2_cli import tools
from jr2_cli.local_cluster import layout
from jr2_infra.images import delivery
from jr2_infra.images.checkout import archive_path, checkout_images
from jr2_infra.images.delivery.local import LocalNode

from .conftest import BIN, CHECKOUT, Instance
from .kind_stand_in import KIND_CONTEXT, NODE, Kind

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]


def only(value: str) -> list[str]:
    return ["docker", "exec", NODE, "ctr", "--namespace", "k8s.io", "images", "list", value]


@pytest.fixture(scope="module")
def instance(
    new_instance: Callable[[str], Instance], depart: Callable[[Instance], None]
) -> Iterator[Instance]:
    made = new_instance("through-kind")
    yield made
    depart(made)


@pytest.fixture(scope="module")
def kind(instance: Instance, tmp_path_factory: pytest.TempPathFactory) -> Kind:
    return Kind(tmp_path_factory.mktemp("kind"), instance)


def converge(instance: Instance, kind: Kind, *arguments: str) -> list[str]:
    done = instance.jr2("up", "--yes", *arguments, environment=kind.environment)
    return done.stderr.splitlines()


def images() -> tuple[str, str]:
    found = checkout_images(CHECKOUT)
    return found.orchestrator, found.operator


def remove_from_node(*refs: str) -> None:
    """Take images off the node, so that they have to be loaded."""
    ctr, socket = tools.require("ctr"), layout.Layout().containerd_socket
    node = LocalNode(ctr, socket)
    held = [ref for ref in refs if delivery.held_everywhere(node.held(ref))]
    if held:
        command = [ctr, "--address", socket, "--namespace", "k8s.io", "images", "rm", *held]
        subprocess.run([str(part) for part in command], check=True, capture_output=True)


def test_it_converges_by_kind_load(instance: Instance, kind: Kind) -> None:
    remove_from_node(*images())

    said = converge(instance, kind)

    assert said[-1] == "converged — `jr2 run <workflow>` when ready"
    assert any(f"→ context {KIND_CONTEXT} / namespace through-kind" in line for line in said)
    made = kind.calls()
    assert made[0] == ["kind", "get", "nodes", "--name", "jr2"]
    for ref in images():
        load = ["kind", "load", "image-archive", str(archive_path(ref)), "--name", "jr2"]
        asked = only(f"name=={ref}")
        at = made.index(load)
        assert made.count(load) == 1
        # Asked before it is loaded, and again afterwards.
        assert asked in made[:at]
        assert asked in made[at:]
        assert f"images: delivered {ref} to the nodes of {KIND_CONTEXT}" in said


def test_a_second_run_loads_nothing_and_is_proved(
    instance: Instance, kind: Kind, pulumi_must_not_run: dict[str, str]
) -> None:
    before = instance.pod_identity()
    kind.calls()
    no_engine = pulumi_must_not_run["PATH"].split(":")[0]

    environment = {**kind.environment, "PATH": f"{no_engine}:{kind.environment['PATH']}"}
    instance.jr2("up", "--yes", environment=environment)

    assert [call for call in kind.calls() if call[1] == "load"] == []
    assert instance.pod_identity() == before


def test_force_loads_again_and_restarts_no_pod(instance: Instance, kind: Kind) -> None:
    before = instance.pod_identity()
    kind.calls()

    said = converge(instance, kind, "--force")

    loads = [call[3] for call in kind.calls() if call[1] == "load"]
    assert sorted(loads) == sorted(str(archive_path(ref)) for ref in images())
    assert any(line.startswith("images: --force delivers the Kit images") for line in said)
    assert instance.pod_identity() == before


def test_without_docker_nothing_is_applied(instance: Instance, kind: Kind, tmp_path: Path) -> None:
    (tmp_path / "kind").symlink_to(kind.environment["PATH"].split(":")[0] + "/kind")
    environment = {**kind.environment, "PATH": f"{tmp_path}:{BIN}:/usr/bin:/bin"}

    said = instance.jr2("up", "--yes", code=1, environment=environment).stderr

    assert said.splitlines()[-1] == (
        f"error: context {KIND_CONTEXT} is a kind cluster, and images reach its nodes by `kind "
        "load` and `docker exec`: docker is not on PATH"
    )
