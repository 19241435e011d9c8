"""Which images the node holds and which archives there are, by the digests that pods show."""

from __future__ import annotations

import io
import json
import sys
import tarfile
from pathlib import Path

import pytest

from jr2_infra.facts.images import read_images
from jr2_infra.images.checkout import archive_path
from jr2_infra.images.delivery.local import LocalNode

HELD = "jr2.local/jr2-operator:held"
ARCHIVED = "jr2.local/jr2-operator:archived"
MISSING = "jr2.local/jr2-operator:missing"
CTR = f"""#!{sys.executable}
import sys
arguments = sys.argv[5:]
if arguments[:2] == ["images", "list"]:
    print("REF TYPE DIGEST")
    if arguments[2] == "name=={HELD}":
        print("{HELD} application/x sha256:held 1 MiB linux/amd64 -")
elif arguments == ["content", "get", "sha256:held"]:
    print('{{"config": {{"digest": "sha256:config-of-held"}}}}')
"""


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalNode:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ctr = tmp_path / "ctr"
    ctr.write_text(CTR)
    ctr.chmod(0o755)
    return LocalNode(ctr, tmp_path / "socket")


def write_archive(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with tarfile.open(path, "w") as tar:
        for name, value in (
            ("index.json", {"manifests": [{"digest": "sha256:manifest"}]}),
            ("blobs/sha256/manifest", {"config": {"digest": "sha256:config"}}),
        ):
            data = json.dumps(value).encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def test_each_image_is_known_by_manifest_and_config(node: LocalNode) -> None:
    write_archive(archive_path(ARCHIVED))
    held, archived, missing = read_images((HELD, ARCHIVED, MISSING), node)
    assert (held.held, held.archived, held.config) == (
        "sha256:held",
        None,
        "sha256:config-of-held",
    )
    assert (archived.held, archived.archived, archived.config) == (
        None,
        "sha256:manifest",
        "sha256:config",
    )
    assert (missing.held, missing.archived, missing.config) == (None, None, None)


def test_an_image_that_is_delivered_again_counts_as_not_held(node: LocalNode) -> None:
    write_archive(archive_path(HELD))
    [found] = read_images([HELD], node, again=True)
    assert (found.held, found.archived, found.config) == (None, "sha256:manifest", "sha256:config")
