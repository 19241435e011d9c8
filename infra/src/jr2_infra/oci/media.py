"""What manifests say: their kinds, and the blobs and manifests that they name.

Source: OCI image spec 1.1; Docker image manifest version 2, schema 2.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from jr2.errors import StepFailed

from .reference import is_digest

OCI_INDEX: Final = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
DOCKER_LIST: Final = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"

MANIFESTS: Final = (OCI_INDEX, OCI_MANIFEST, DOCKER_LIST, DOCKER_MANIFEST)
MANIFEST_BYTES: Final = 4 * 2**20
"""What a registry must take, and so what we read at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """A manifest or a blob by its content.

    Args:
        media_type: what it is.
        digest: the sha256 of its bytes.
        size: its bytes.
        annotations: what else stands beside it.
        elsewhere: whether it is a layer that is not to be pushed, since it has an address of its
            own.
    """

    media_type: str
    digest: str
    size: int
    annotations: MappingProxyType[str, str] = field(default_factory=lambda: MappingProxyType({}))
    elsewhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest as it was read, byte for byte.

    Args:
        descriptor: its kind, digest and size.
        content: its bytes.
        manifests: the manifests that it names; empty but for an index.
        blobs: the blobs that it names: config and layers.
    """

    descriptor: Descriptor
    content: bytes
    manifests: tuple[Descriptor, ...] = ()
    blobs: tuple[Descriptor, ...] = ()


def digest_of(content: bytes) -> str:
    """The digest of bytes."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def read_manifest(content: bytes, media_type: str, where: str) -> Manifest:
    """Read a manifest or an index.

    Args:
        content: its bytes.
        media_type: what its owner says it is; its own word counts more.
        where: where it was found, for an error.

    Raises:
        StepFailed: it is no manifest, or one of a kind that is no longer used.
    """
    try:
        value = json.loads(content)
        kind = value.get("mediaType") or media_type.partition(";")[0].strip()
        manifests: tuple[Descriptor, ...] = ()
        blobs: tuple[Descriptor, ...] = ()
        if kind in (OCI_INDEX, DOCKER_LIST):
            manifests = tuple(read_descriptor(item) for item in value["manifests"])
        elif kind in (OCI_MANIFEST, DOCKER_MANIFEST):
            blobs = tuple(read_descriptor(item) for item in (value["config"], *value["layers"]))
        else:
            raise StepFailed(f"{where} is of the kind {kind!r}, and no image")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StepFailed(f"{where} is no manifest of an image") from error
    descriptor = Descriptor(media_type=kind, digest=digest_of(content), size=len(content))
    return Manifest(descriptor=descriptor, content=content, manifests=manifests, blobs=blobs)


def read_descriptor(value: Any) -> Descriptor:
    """Read a descriptor of a manifest.

    Raises:
        ValueError: it has no sha256 digest, or no size.
        KeyError: a field is missing.
        TypeError: a field is of another type.
    """
    digest, size = value["digest"], value["size"]
    if not isinstance(digest, str) or not is_digest(digest):
        raise ValueError(digest)
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise ValueError(size)
    media_type = str(value["mediaType"])
    return Descriptor(
        media_type=media_type,
        digest=digest,
        size=size,
        annotations=MappingProxyType(dict(value.get("annotations") or {})),
        elsewhere=bool(value.get("urls")) or ".foreign." in media_type,
    )
