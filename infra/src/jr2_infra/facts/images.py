"""Which Kit images of a checkout the nodes hold, and which archives could be delivered.

Source: design §6.1 and §7.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..images.checkout import archive_path
from ..images.delivery import Delivery, held_everywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """One image that is delivered to the nodes, never pulled.

    Args:
        ref: its name.
        held: the digest that every node holds under this name; `None` when one lacks it, or when
            it is to be delivered again.
        archived: the digest of the archive that could be delivered, or `None`; it is not looked at
            when the nodes hold the image.
        config: the digest of the image's config, which a pod gives as the image that it runs when
            the image has no registry; `None` when it cannot be read.
    """

    ref: str
    held: str | None
    archived: str | None = None
    config: str | None = None


def read_images(
    refs: Iterable[str], delivery: Delivery, *, again: bool = False
) -> tuple[ImageFacts, ...]:
    """Ask the nodes for each image, all at once.

    Args:
        refs: the names.
        delivery: how the nodes are reached.
        again: each is to be delivered whatever the nodes hold.

    Raises:
        StepFailed: a node does not answer.
    """

    def read(ref: str) -> ImageFacts:
        held = None if again else held_everywhere(delivery.held(ref))
        if held is not None:
            return ImageFacts(ref=ref, held=held, config=delivery.config(held))
        archive = archive_path(ref)
        if not archive.is_file():
            return ImageFacts(ref=ref, held=None)
        archived, config = archive_digests(archive)
        return ImageFacts(ref=ref, held=None, archived=archived, config=config)

    with ThreadPoolExecutor(max_workers=4) as pool:
        return tuple(pool.map(read, refs))


def archive_digests(archive: Path) -> tuple[str, str]:
    """Return the digests of the manifest and of the config of an OCI archive."""
    with tarfile.open(archive) as tar:
        manifest = str(_member(tar, "index.json")["manifests"][0]["digest"])
        blob = f"blobs/sha256/{manifest.removeprefix('sha256:')}"
        return manifest, str(_member(tar, blob)["config"]["digest"])


def _member(tar: tarfile.TarFile, name: str) -> Any:
    file = tar.extractfile(name)
    if file is None:
        raise KeyError(name)
    return json.load(file)
