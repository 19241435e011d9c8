"""Layers and archives: the same files give the same bytes, and a registry client can read them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jr2 import names
from jr2.errors import StepFailed
from jr2_infra.images.build import oci, recipe
from jr2_infra.images.build.layers import Layer, pack_folder

Change = Callable[[Path], None]


def make_tree(root: Path, order: list[str]) -> Path:
    for name in order:
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(name)
    (root / "bin/run").chmod(0o755)
    (root / "lib/link").symlink_to("../etc/conf")
    os.link(root / "etc/conf", root / "etc/same")
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    return root


FILES = ["etc/conf", "bin/run", "lib/a.py", "lib/a/b.py"]


def test_bytes_do_not_depend_on_clock_owner_umask_or_order(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        one = make_tree(tmp_path / "one", FILES)
        os.umask(0o077)
        two = make_tree(tmp_path / "two", FILES[::-1])
    finally:
        os.umask(before)
    for place in two.rglob("*"):
        os.utime(place, (1, 1), follow_symlinks=False)
    first = pack_folder(one, tmp_path / "one.tar")
    second = pack_folder(two, tmp_path / "two.tar")

    assert first.path.read_bytes() == second.path.read_bytes()
    assert first.digest == second.digest
    assert first.digest == f"sha256:{hashlib.sha256(first.path.read_bytes()).hexdigest()}"
    assert first.size == first.path.stat().st_size
    assert first.unpacked == sum(len(name) for name in FILES)


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "lib/a.py").write_text("other"),
        lambda root: (root / "lib/a.py").chmod(0o755),
        lambda root: (root / "lib/a.py").rename(root / "lib/c.py"),
        lambda root: (root / "empty").mkdir(),
        lambda root: (root / "lib/more").symlink_to("a.py"),
    ],
    ids=["content", "execute bit", "name", "empty folder", "link"],
)
def test_a_change_changes_the_digest(tmp_path: Path, change: Change) -> None:
    root = make_tree(tmp_path / "root", FILES)
    before = pack_folder(root, tmp_path / "before.tar").digest
    change(root)
    assert pack_folder(root, tmp_path / "after.tar").digest != before


def test_members_are_root_without_set_user_bits(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", FILES)
    (root / "bin/run").chmod(0o6755)
    layer = pack_folder(root, tmp_path / "layer.tar")
    with tarfile.open(layer.path) as tar:
        members = {member.name: member for member in tar}
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members.values()} == {
        (0, 0, "", "", 0)
    }
    assert {name: oct(member.mode) for name, member in members.items()} == {
        "bin": "0o755",
        "bin/run": "0o755",
        "etc": "0o755",
        "etc/conf": "0o644",
        "etc/same": "0o644",
        "lib": "0o755",
        "lib/a": "0o755",
        "lib/a/b.py": "0o644",
        "lib/a.py": "0o644",
        "lib/link": "0o777",
        "tmp": "0o1777",
    }
    assert (members["etc/same"].type, members["etc/same"].linkname) == (tarfile.LNKTYPE, "etc/conf")


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "root", FILES)
    os.mkfifo(root / "etc/pipe")
    with pytest.raises(ValueError, match="etc/pipe is neither"):
        pack_folder(root, tmp_path / "layer.tar")
    assert not (tmp_path / "layer.tar").exists()


REF = "jr2.local/jr2-orchestrator:0123456789ab"


CONTENT_HASH = "0123456789ab" + "c" * 52


def archive(
    tmp_path: Path, name: str, layers: list[Layer], must_be: str | None = None
) -> tuple[Path, oci.Archived]:
    target = tmp_path / name
    return target, oci.write_archive(
        recipe.ORCHESTRATOR,
        ref=REF,
        content_hash=CONTENT_HASH,
        architecture="amd64",
        layers=layers,
        target=target,
        must_be=must_be,
    )


@pytest.fixture
def layers(tmp_path: Path) -> list[Layer]:
    made = []
    for name in ("low", "high"):
        root = tmp_path / name
        root.mkdir()
        (root / name).write_text(name)
        made.append(pack_folder(root, tmp_path / f"{name}.tar"))
    return made


def read_archive(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {member.name: file.read() for member in tar if (file := tar.extractfile(member))}


def blob(files: dict[str, bytes], descriptor: dict[str, Any]) -> bytes:
    data = files[f"blobs/sha256/{descriptor['digest'].removeprefix('sha256:')}"]
    assert f"sha256:{hashlib.sha256(data).hexdigest()}" == descriptor["digest"]
    assert len(data) == descriptor["size"]
    return data


def test_archive_is_an_oci_layout(tmp_path: Path, layers: list[Layer]) -> None:
    path, archived = archive(tmp_path, "image.tar", layers)
    files = read_archive(path)

    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (descriptor,) = json.loads(files["index.json"])["manifests"]
    assert descriptor["digest"] == archived.digest == oci.archived_digest(path)
    assert descriptor["annotations"] == {
        "io.containerd.image.name": REF,
        "org.opencontainers.image.ref.name": REF,
    }
    assert descriptor["platform"] == {"architecture": "amd64", "os": "linux"}
    manifest = json.loads(blob(files, descriptor))
    config = json.loads(blob(files, manifest["config"]))
    contents = [blob(files, layer) for layer in manifest["layers"]]
    assert contents == [layer.path.read_bytes() for layer in layers]
    assert config["rootfs"]["diff_ids"] == [layer.digest for layer in layers]
    assert len(config["history"]) == len(layers)
    with tarfile.open(fileobj=io.BytesIO(contents[1])) as tar:
        assert tar.getnames() == ["high"]


@pytest.mark.parametrize("image", recipe.KIT_IMAGES, ids=lambda image: str(image.name))
def test_config_says_who_runs_what(image: recipe.KitImage, layers: list[Layer]) -> None:
    config = oci.image_config(image, "amd64", layers, CONTENT_HASH)["config"]
    uid, gid = config["User"].split(":")
    assert int(uid) == int(gid) == image.uid > 0
    assert config["Entrypoint"] == [image.programs[0][0] if image.programs else names.TREE_PYTHON]
    assert config["Labels"] == {
        "org.opencontainers.image.created": "1970-01-01T00:00:00Z",
        "org.opencontainers.image.description": image.title,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.title": image.name,
        "org.opencontainers.image.vendor": "jr2",
        "org.opencontainers.image.version": names.KIT_VERSION,
        "jr2.dev/content-hash": CONTENT_HASH,
        "jr2.dev/kind": "kit",
        "jr2.dev/version": names.KIT_VERSION,
    }


def test_the_manifest_bears_the_labels_too(tmp_path: Path, layers: list[Layer]) -> None:
    path, archived = archive(tmp_path, "image.tar", layers)
    manifest = json.loads(read_archive(path)[f"blobs/sha256/{archived.digest[7:]}"])
    assert manifest["annotations"] == oci.labels(recipe.ORCHESTRATOR, CONTENT_HASH)


def test_an_archive_is_never_replaced_by_another_image(tmp_path: Path, layers: list[Layer]) -> None:
    path, archived = archive(tmp_path, "image.tar", layers)
    before = path.read_bytes()
    assert archive(tmp_path, "image.tar", layers, must_be=archived.digest)[1] == archived
    with pytest.raises(StepFailed, match=r"the build is not reproducible: jr2\.local/"):
        archive(tmp_path, "image.tar", layers[:1], must_be=archived.digest)
    assert path.read_bytes() == before


def test_archive_bytes_repeat(tmp_path: Path, layers: list[Layer]) -> None:
    one, first = archive(tmp_path, "one.tar", layers)
    two, second = archive(tmp_path, "two.tar", layers)
    assert first == second
    assert one.read_bytes() == two.read_bytes()
    assert archive(tmp_path, "three.tar", layers[:1])[1].digest != first.digest
