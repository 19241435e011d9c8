"""Which Kit images of a checkout the nodes hold, and which archives could be imported.

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

from jr2 import names

from .. import processes
from ..images import deliver
from ..images.checkout import archive_path
from ..tooling import LocalImport


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFacts:
    """One image that is imported, never pulled.

    Args:
        ref: its name.
        held: the digest that the node holds under this name, or `None`.
        archived: the digest of the archive that could be imported, or `None`; it is not looked at
            when the node holds the image.
        config: the digest of the image's config, which a pod gives as the image that it runs when
            the image has no registry; `None` when it cannot be read.
    """

    ref: str
    held: str | None
    archived: str | None = None
    config: str | None = None


def read_images(refs: Iterable[str], local_import: LocalImport) -> tuple[ImageFacts, ...]:
    """Ask the node for each image, all at once.

    Raises:
        StepFailed: containerd does not answer.
    """

    def read(ref: str) -> ImageFacts:
        held = deliver.node_has(ref, local_import)
        if held is not None:
            return ImageFacts(ref=ref, held=held, config=_held_config(held, local_import))
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


def _held_config(digest: str, local_import: LocalImport) -> str | None:
    """Read the manifest that the node holds; `None` when it does not say which config it has."""
    found = processes.run(
        [
            local_import.ctr,
            "--address",
            str(local_import.socket),
            "--namespace",
            names.CONTAINERD_NAMESPACE,
            "content",
            "get",
            digest,
        ]
    )
    try:
        return str(json.loads(found.stdout)["config"]["digest"])
    except (ValueError, KeyError, TypeError):
        return None
