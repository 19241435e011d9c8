"""Delivery of checkout images, with stand-ins for `ctr`, `kind` and `docker`.

The stand-ins keep what each node holds in a file, and write down each call with its arguments.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jr2.errors import StepFailed
from jr2_infra.images import checkout, delivery
from jr2_infra.images.build import oci, recipe
from jr2_infra.images.build.layers import pack_folder
from jr2_infra.images.delivery import Delivery
from jr2_infra.images.delivery.kind import KindCluster
from jr2_infra.images.delivery.local import LocalNode

REF = "jr2.local/jr2-operator:0123456789ab"
HEAD = """\
#!{python}
import json, pathlib, sys, tarfile
here = pathlib.Path(__file__).parent
with (here / "calls").open("a") as file:
    file.write(json.dumps([pathlib.Path(__file__).name, *sys.argv[1:]]) + "\\n")
if (here / "fails").exists():
    sys.exit((here / "fails").read_text())
nodes = json.loads((here / "nodes.json").read_text())

def listed(node, name):
    print("REF TYPE DIGEST SIZE PLATFORMS LABELS")
    for ref, digest in nodes[node].items():
        if name == f"name=={{ref}}":
            print(ref, "application/vnd.oci.image.manifest.v1+json", digest, "9 MiB linux/amd64 -")

def take(archive, into):
    with tarfile.open(archive) as tar:
        (entry,) = json.load(tar.extractfile("index.json"))["manifests"]
    for node in into:
        nodes[node][entry["annotations"]["io.containerd.image.name"]] = entry["digest"]
    (here / "nodes.json").write_text(json.dumps(nodes))
"""
CTR = """
assert sys.argv[1:5] == ["--address", str(here / "socket"), "--namespace", "k8s.io"], sys.argv
_, verb, argument = sys.argv[5:]
listed("local", argument) if verb == "list" else take(argument, ["local"])
"""
DOCKER = """
verb, node, ctr, option, namespace, images, list_, name = sys.argv[1:]
assert [verb, ctr, option, namespace, images, list_] == [
    "exec", "ctr", "--namespace", "k8s.io", "images", "list"], sys.argv
listed(node, name)
"""
KIND = """
if sys.argv[1:3] == ["get", "nodes"]:
    print("\\n".join([*nodes, "jr2-external-load-balancer"] if nodes else []))
else:
    assert sys.argv[1:3] == ["load", "image-archive"], sys.argv
    take(sys.argv[3], json.loads((here / "reached.json").read_text()))
"""
NODES = ["jr2-control-plane", "jr2-worker"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, body in (("ctr", CTR), ("docker", DOCKER), ("kind", KIND)):
        program = tmp_path / name
        program.write_text(HEAD.format(python=sys.executable) + body)
        program.chmod(0o755)
    return tmp_path


@pytest.fixture
def local(here: Path) -> LocalNode:
    (here / "nodes.json").write_text(json.dumps({"local": {}}))
    return LocalNode(here / "ctr", here / "socket")


@pytest.fixture
def kind(here: Path) -> KindCluster:
    (here / "nodes.json").write_text(json.dumps({name: {} for name in NODES}))
    (here / "reached.json").write_text(json.dumps(NODES))
    return KindCluster(here / "kind", here / "docker", "jr2")


@pytest.fixture
def digest(here: Path) -> str:
    root = here / "root"
    root.mkdir()
    layer = pack_folder(root, here / "layer.tar")
    return oci.write_archive(
        recipe.OPERATOR,
        ref=REF,
        content_hash="c" * 64,
        architecture="amd64",
        layers=[layer],
        target=checkout.archive_path(REF),
    ).digest


def calls(here: Path) -> list[list[str]]:
    record = here / "calls"
    return [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []


def asks(*nodes: str) -> list[list[str]]:
    return [
        ["docker", "exec", node, "ctr", "--namespace", "k8s.io", "images", "list", f"name=={REF}"]
        for node in nodes
    ]


def test_the_local_node_imports_once_and_again_when_told(
    here: Path, local: LocalNode, digest: str
) -> None:
    archive = str(checkout.archive_path(REF))
    assert delivery.deliver(REF, local)
    assert delivery.held_everywhere(local.held(REF)) == digest
    assert not delivery.deliver(REF, local)
    assert delivery.deliver(REF, local, again=True)

    imports = [call[6:] for call in calls(here) if call[6] == "import"]
    assert imports == [["import", archive], ["import", archive]]


def test_kind_loads_the_archive_between_two_looks_at_each_node(
    here: Path, kind: KindCluster, digest: str
) -> None:
    assert delivery.deliver(REF, kind)

    made = calls(here)
    assert made[0] == ["kind", "get", "nodes", "--name", "jr2"]
    # Nodes are asked at the same time, so two of these stand in either order.
    assert sorted(made[1:3]) == asks(*NODES)
    archive = str(checkout.archive_path(REF))
    assert made[3] == ["kind", "load", "image-archive", archive, "--name", "jr2"]
    assert sorted(made[4:]) == asks(*NODES)
    assert kind.held(REF) == dict.fromkeys(NODES, digest)


def test_kind_loads_nothing_that_each_node_has(here: Path, kind: KindCluster, digest: str) -> None:
    (here / "nodes.json").write_text(json.dumps({name: {REF: digest} for name in NODES}))

    assert not delivery.deliver(REF, kind)
    assert "load" not in [call[1] for call in calls(here)]


def test_an_image_that_one_node_lacks_is_loaded(here: Path, kind: KindCluster, digest: str) -> None:
    (here / "nodes.json").write_text(json.dumps({NODES[0]: {REF: digest}, NODES[1]: {}}))

    assert delivery.held_everywhere(kind.held(REF)) is None
    assert delivery.deliver(REF, kind)
    assert kind.held(REF) == dict.fromkeys(NODES, digest)


def test_a_node_that_a_load_did_not_reach_is_named(
    here: Path, kind: KindCluster, digest: str
) -> None:
    (here / "reached.json").write_text(json.dumps(NODES[:1]))

    with pytest.raises(StepFailed) as raised:
        delivery.deliver(REF, kind)
    assert raised.value.printed == (
        f"error: brought {REF} to the nodes of kind-jr2, and jr2-worker holds nothing under it"
    )


@pytest.mark.parametrize("node", NODES)
def test_never_over_another_image(here: Path, kind: KindCluster, digest: str, node: str) -> None:
    held = {name: {REF: digest} for name in NODES} | {node: {REF: "sha256:other"}}
    (here / "nodes.json").write_text(json.dumps(held))

    with pytest.raises(
        StepFailed, match=rf"^{node} holds sha256:other under jr2\.local/jr2-operator"
    ):
        delivery.deliver(REF, kind, again=True)
    assert "load" not in [call[1] for call in calls(here)]


def test_a_cluster_that_kind_does_not_know_is_named(here: Path, kind: KindCluster) -> None:
    (here / "nodes.json").write_text("{}")

    with pytest.raises(StepFailed, match='kind knows no cluster "jr2" on this machine'):
        kind.held(REF)


def test_a_missing_archive_is_named(local: LocalNode) -> None:
    with pytest.raises(StepFailed, match=r"there is no archive of jr2\.local/jr2-operator"):
        delivery.deliver(REF, local)


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("local", "cannot list the images of the local cluster: it is gone"),
        ("kind", "kind cannot list the nodes of kind-jr2: it is gone — is Docker running?"),
    ],
)
def test_a_program_that_fails_is_quoted(
    here: Path, request: pytest.FixtureRequest, digest: str, way: str, words: str
) -> None:
    made: Delivery = request.getfixturevalue(way)
    (here / "fails").write_text("it is gone")

    with pytest.raises(StepFailed) as raised:
        delivery.deliver(REF, made)
    assert raised.value.message == words


@pytest.mark.parametrize("way", ["local", "kind"])
def test_a_provider_delivers_as_its_run_does(
    request: pytest.FixtureRequest, digest: str, way: str
) -> None:
    made: Delivery = request.getfixturevalue(way)
    read: Callable[..., Delivery | None] = delivery.delivery_from

    back = read(delivery.delivery_settings(made))

    assert back is not None
    assert delivery.deliver(REF, back)
    assert delivery.held_everywhere(made.held(REF)) == digest


def test_a_run_that_delivers_nothing_says_so() -> None:
    assert delivery.delivery_settings(None) == {}
    assert delivery.delivery_from({}) is None
