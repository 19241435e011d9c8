"""Which Kit images of a checkout the nodes hold, and which archives could be imported.

Source: design §6.1 and §7.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..images import deliver
from ..images.build.oci import archived_digest
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
    """

    ref: str
    held: str | None
    archived: str | None = None


def read_images(refs: Iterable[str], local_import: LocalImport) -> tuple[ImageFacts, ...]:
    """Ask the node for each image, all at once.

    Raises:
        StepFailed: containerd does not answer.
    """

    def read(ref: str) -> ImageFacts:
        held = deliver.node_has(ref, local_import)
        if held is not None:
            return ImageFacts(ref=ref, held=held)
        archive = archive_path(ref)
        archived = archived_digest(archive) if archive.is_file() else None
        return ImageFacts(ref=ref, held=None, archived=archived)

    with ThreadPoolExecutor(max_workers=4) as pool:
        return tuple(pool.map(read, refs))
