"""Delivery to the local cluster's node, with a stand-in for `ctr` that keeps its images in a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from jr2.errors import StepFailed
from jr2_infra.images import checkout
from jr2_infra.images.build import oci, recipe
from jr2_infra.images.build.layers import pack_folder
from jr2_infra.images.deliver import import_archive, node_has
from jr2_infra.tooling import LocalImport

REF = "jr2.local/jr2-operator:0123456789ab"
CTR = """\
#!{python}
import json, pathlib, sys, tarfile
here = pathlib.Path(__file__).parent
assert sys.argv[1:5] == ["--address", str(here / "socket"), "--namespace", "k8s.io"], sys.argv
held = json.loads((here / "held.json").read_text())
verb, argument = sys.argv[6:]
if (here / "fails").exists():
    sys.exit("ctr: connection refused")
if verb == "list":
    print("REF TYPE DIGEST SIZE PLATFORMS LABELS")
    for ref, digest in held.items():
        if argument == f"name=={{ref}}":
            print(ref, "application/vnd.oci.image.manifest.v1+json", digest, "9 MiB linux/amd64 -")
else:
    with tarfile.open(argument) as tar:
        (entry,) = json.load(tar.extractfile("index.json"))["manifests"]
    held[entry["annotations"]["io.containerd.image.name"]] = entry["digest"]
    (here / "held.json").write_text(json.dumps(held))
    with (here / "imports").open("a") as file:
        file.write("once\\n")
"""


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalImport:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ctr = tmp_path / "ctr"
    ctr.write_text(CTR.format(python=sys.executable))
    ctr.chmod(0o755)
    (tmp_path / "held.json").write_text("{}")
    return LocalImport(ctr=ctr, socket=tmp_path / "socket", server="https://127.0.0.1:6443")


@pytest.fixture
def digest(tmp_path: Path, node: LocalImport) -> str:
    root = tmp_path / "root"
    root.mkdir()
    layer = pack_folder(root, tmp_path / "layer.tar")
    target = checkout.archive_path(REF)
    return oci.write_archive(
        recipe.OPERATOR, ref=REF, architecture="amd64", layers=[layer], target=target
    ).digest


def imports(node: LocalImport) -> int:
    record = node.ctr.with_name("imports")
    return len(record.read_text().splitlines()) if record.exists() else 0


def test_imports_once(node: LocalImport, digest: str) -> None:
    assert node_has(REF, node) is None
    import_archive(REF, node)
    assert node_has(REF, node) == digest
    import_archive(REF, node)
    assert imports(node) == 1


def test_never_over_another_image(node: LocalImport, digest: str) -> None:
    node.ctr.with_name("held.json").write_text(json.dumps({REF: "sha256:other"}))
    with pytest.raises(
        StepFailed, match=r"the node holds sha256:other under jr2\.local/jr2-operator"
    ):
        import_archive(REF, node)
    assert imports(node) == 0


def test_a_missing_archive_is_named(node: LocalImport) -> None:
    with pytest.raises(StepFailed, match=f"there is no archive of {REF}"):
        import_archive(REF, node)


def test_containerd_does_not_answer(node: LocalImport, digest: str) -> None:
    node.ctr.with_name("fails").write_text("")
    with pytest.raises(StepFailed, match="connection refused"):
        import_archive(REF, node)
