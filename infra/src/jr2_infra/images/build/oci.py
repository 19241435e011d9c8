"""An OCI archive of layers, as `ctr images import` and every registry client read it.

The archive has one manifest, named twice: by the annotation that containerd reads and by the one
of the OCI layout. Its bytes depend on its layers and the recipe alone.

Source: OCI image layout 1.1; design §6.1.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jr2 import names
from jr2.errors import StepFailed

from . import recipe
from .layers import Layer

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
_CREATED = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """An image in an archive: the digest of its manifest, and the bytes of its files."""

    digest: str
    unpacked: int


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def labels(image: recipe.KitImage, content_hash: str) -> dict[str, str]:
    """Return the labels of an image; they stand on its manifest as annotations too.

    Args:
        image: what it is.
        content_hash: the SHA-256 of everything that went in, as hex digits.
    """
    return {
        "org.opencontainers.image.title": image.name,
        "org.opencontainers.image.description": image.title,
        "org.opencontainers.image.version": names.KIT_VERSION,
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.vendor": "jr2",
        "org.opencontainers.image.created": _CREATED,
        names.LABEL_KIND: names.KIND_KIT,
        names.LABEL_VERSION: names.KIT_VERSION,
        names.LABEL_CONTENT_HASH: content_hash,
    }


def image_config(
    image: recipe.KitImage, architecture: str, layers: Sequence[Layer], content_hash: str
) -> dict[str, Any]:
    """Return the OCI config of an image."""
    return {
        "created": _CREATED,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": f"{image.uid}:{image.uid}",
            "Env": list(recipe.ENVIRONMENT),
            "Entrypoint": [image.programs[0][0] if image.programs else image.python],
            "WorkingDir": "/",
            "Labels": labels(image, content_hash),
        },
        "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in layers]},
        "history": [{"created": _CREATED, "created_by": "build-kit-images"} for _ in layers],
    }


def write_archive(
    image: recipe.KitImage,
    *,
    ref: str,
    content_hash: str,
    architecture: str,
    layers: Sequence[Layer],
    target: Path,
    must_be: str | None = None,
) -> Archived:
    """Write the OCI archive of an image; it is complete under `target` or absent.

    Args:
        image: what it is.
        ref: the whole name that it has once it was imported.
        content_hash: the SHA-256 of everything that went in, as hex digits.
        architecture: the OCI name.
        layers: the lowest first.
        target: where the archive goes.
        must_be: the digest of an archive that is there already under this name.

    Raises:
        StepFailed: the image has another digest than `must_be`; what is there stays.
    """
    config = _json(image_config(image, architecture, layers, content_hash))
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": {"mediaType": CONFIG_TYPE, "digest": _digest(config), "size": len(config)},
            "layers": [
                {"mediaType": LAYER_TYPE, "digest": layer.digest, "size": layer.size}
                for layer in layers
            ],
            "annotations": labels(image, content_hash),
        }
    )
    if must_be not in (None, _digest(manifest)):
        raise StepFailed(
            f"the build is not reproducible: {ref} was {must_be}, and the same sources now give "
            f"{_digest(manifest)}. {target} stays as it is — remove it to take the new one"
        )
    index = _json(
        {
            "schemaVersion": 2,
            "mediaType": INDEX_TYPE,
            "manifests": [
                {
                    "mediaType": MANIFEST_TYPE,
                    "digest": _digest(manifest),
                    "size": len(manifest),
                    "platform": {"architecture": architecture, "os": "linux"},
                    "annotations": {
                        "io.containerd.image.name": ref,
                        "org.opencontainers.image.ref.name": ref,
                    },
                }
            ],
        }
    )
    small = {
        "index.json": index,
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        _blob(_digest(config)): config,
        _blob(_digest(manifest)): manifest,
    }
    big = {_blob(layer.digest): layer.path for layer in layers}
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.part")
    with tarfile.open(partial, "w", format=tarfile.GNU_FORMAT) as tar:
        for name in ("blobs", "blobs/sha256"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
        for name in sorted({*small, *big}):
            member = tarfile.TarInfo(name)
            member.mode = 0o644
            if name in small:
                member.size = len(small[name])
                tar.addfile(member, io.BytesIO(small[name]))
            else:
                member.size = big[name].stat().st_size
                with big[name].open("rb") as file:
                    tar.addfile(member, file)
    partial.replace(target)
    return Archived(digest=_digest(manifest), unpacked=sum(layer.unpacked for layer in layers))


def _blob(digest: str) -> str:
    return f"blobs/sha256/{digest.removeprefix('sha256:')}"


def sbom_name(archive: str) -> str:
    """Return the name of the file beside an archive that tells what its image is made of."""
    return f"{archive.removesuffix('.oci.tar')}.cdx.json"


def archived_digest(archive: Path) -> str:
    """Return the manifest digest of an archive that `write_archive` wrote."""
    with tarfile.open(archive) as tar:
        file = tar.extractfile("index.json")
        assert file is not None, "write_archive always writes the index"
        index = json.load(file)
    return str(index["manifests"][0]["digest"])
