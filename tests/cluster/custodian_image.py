"""An image with a real Envoy under the name of the Pinned one, for a node that can pull nothing.

It holds the Envoy of the dev group and the libraries that it names, and nothing else: no shell and
no other file, as in the distroless image.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

from jr2 import names
from jr2_infra.images.build import oci, recipe
from jr2_infra.images.build.layers import pack_folder
from jr2_infra.images.delivery.local import LocalNode
from tests.envoy import envoy

_ENTRYPOINT = "/usr/local/bin/envoy"


def name_on_a_node(image: str = names.CUSTODIAN_IMAGE) -> str:
    """How a node's containerd calls an image that a pod names by tag and digest."""
    repository, _, digest = image.partition("@")
    return f"{repository.rpartition(':')[0]}@{digest}"


def bring_custodian(node: LocalNode, folder: Path, *, architecture: str) -> None:
    """Give the node an Envoy under the Pinned image's name, unless it has one.

    Args:
        node: the node of the local cluster.
        folder: where the image may be made.
        architecture: the OCI name of the node's.
    """
    ref = name_on_a_node()
    if node.held(ref)[node.where] is not None:
        return
    root = folder / "envoy-root"
    _copy(envoy(), root / _ENTRYPOINT[1:])
    listed = subprocess.run(["ldd", envoy()], capture_output=True, text=True, check=True).stdout
    for place in re.findall(r"(/\S+) \(0x", listed):
        _copy(Path(place), root / place[1:])
    layer = pack_folder(root, folder / "envoy-layer.tar")
    image = dataclasses.replace(
        recipe.HARNESS,
        name="jr2-test-envoy",
        title="Envoy in the place of the Pinned image",
        python=_ENTRYPOINT,
        programs=(),
    )
    target = folder / "envoy.oci.tar"
    oci.write_archive(
        image,
        ref=ref,
        content_hash=layer.digest[7:],
        architecture=architecture,
        layers=[layer],
        target=target,
    )
    node.load(target, ref)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755)
