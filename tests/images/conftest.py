"""The Kit images of this checkout, built: what the tests of their content stand on.

They need root on Debian or Ubuntu and no cluster; `scripts/test` runs them where both are.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jr2 import names

CHECKOUT = Path(__file__).resolve().parents[2]
BUILD = CHECKOUT / "scripts" / "build-kit-images"
CHROOT = shutil.which("chroot", path="/usr/sbin:/usr/bin") or "chroot"


def run(argv: Sequence[str | Path], **options: Any) -> str:
    done = subprocess.run(
        [str(part) for part in argv],
        capture_output=True,
        text=True,
        timeout=1000,
        check=False,
        **options,
    )
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return str(done.stdout)


@dataclass(frozen=True)
class Image:
    """A built image, read from its archive as a registry client would."""

    name: str
    ref: str
    digest: str
    archive: Path
    sbom: dict[str, Any]

    def _blob(self, tar: tarfile.TarFile, digest: str) -> Any:
        file = tar.extractfile(f"blobs/sha256/{digest.removeprefix('sha256:')}")
        assert file is not None
        return file

    def documents(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """The index, the manifest and the config."""
        with tarfile.open(self.archive) as tar:
            file = tar.extractfile("index.json")
            assert file is not None
            index = json.load(file)
            manifest = json.load(self._blob(tar, index["manifests"][0]["digest"]))
            return index, manifest, json.load(self._blob(tar, manifest["config"]["digest"]))

    def layers(self) -> Iterator[tarfile.TarFile]:
        """Each layer, the lowest first."""
        with tarfile.open(self.archive) as tar:
            for layer in self.documents()[1]["layers"]:
                with tarfile.open(fileobj=self._blob(tar, layer["digest"])) as opened:
                    yield opened

    def members(self) -> list[tarfile.TarInfo]:
        return [member for layer in self.layers() for member in layer]


@pytest.fixture(scope="session")
def images() -> dict[str, Image]:
    """The Kit images by name; they are built when they are not there."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip("Kit images are built as root on Debian or Ubuntu")
    run([BUILD])
    return {
        item["image"]: Image(
            name=item["image"],
            ref=item["ref"],
            digest=item["digest"],
            archive=Path(item["archive"]),
            sbom=json.loads(Path(item["sbom"]).read_text()),
        )
        for item in json.loads(run([BUILD, "--list"]))
    }


@pytest.fixture(scope="session")
def tree_root(images: dict[str, Image], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root file system that holds the Harness's `/opt/jr2` and nothing of an image."""
    root = tmp_path_factory.mktemp("stranger")
    for layer in images[names.IMAGE_HARNESS].layers():
        for member in layer:
            if member.name.startswith(f"{names.TREE_SUBPATH}/"):
                layer.extract(member, root, filter="tar")
    for name in ("dev", "tmp"):
        (root / name).mkdir()
    # What the kubelet would mount; git opens both, and files do.
    (root / "dev/null").touch()
    (root / "dev/urandom").write_bytes(os.urandom(1 << 16))
    return root


@pytest.fixture
def inside(tree_root: Path) -> Callable[..., str]:
    """Run a program of the tree with nothing around it, and return what it said."""

    def start(*argv: str, **environment: str) -> str:
        return run([CHROOT, tree_root, *argv], env={"HOME": "/tmp", **environment})

    return start
