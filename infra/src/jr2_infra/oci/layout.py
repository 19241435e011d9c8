"""An OCI image layout as a folder or a tar archive: what `index.json` names, and its blobs.

An archive is read in place: each blob is a piece of the file. Names of blobs are made from digests
alone, so no name in an archive is ever a path outside it.

Source: OCI image layout 1.1.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jr2.errors import StepFailed

from .media import MANIFEST_BYTES, Descriptor, Manifest, digest_of, read_descriptor, read_manifest

NAME_ANNOTATIONS: Final = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
_CHUNK: Final = 256 * 1024


class Layout:
    """An image layout.

    Args:
        path: the folder or the tar archive.

    Raises:
        StepFailed: it is neither, or no image layout.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pieces = {} if path.is_dir() else _pieces(path)
        try:
            index = json.loads(self._small("index.json"))
            self.images = tuple(read_descriptor(item) for item in index["manifests"])
        except (ValueError, KeyError, TypeError) as error:
            raise StepFailed(f"{path} is no image layout: its index.json cannot be read") from error

    def choose(self, name: str | None = None) -> Descriptor:
        """Return the one image of the layout, or the one with a name.

        Args:
            name: a name that an annotation of it says.

        Raises:
            StepFailed: there is no such image, or more than one.
        """
        found = [
            image
            for image in self.images
            if name is None or name in {image.annotations.get(key) for key in NAME_ANNOTATIONS}
        ]
        if len(found) == 1:
            return found[0]
        names = [
            next(
                (image.annotations[key] for key in NAME_ANNOTATIONS if key in image.annotations), ""
            )
            or image.digest
            for image in self.images
        ]
        wanted = "one image" if name is None else f'an image "{name}"'
        raise StepFailed(
            f"{self.path} does not hold {wanted}: it holds {', '.join(names) or 'none'}"
        )

    def read_manifest(self, descriptor: Descriptor) -> Manifest:
        """Read a manifest.

        Raises:
            StepFailed: it is missing, or is another one than its digest says.
        """
        content = self._small(_blob(descriptor.digest))
        if digest_of(content) != descriptor.digest:
            raise StepFailed(
                f"{self.path}: the blob {descriptor.digest} has the digest {digest_of(content)}"
            )
        return read_manifest(content, descriptor.media_type, f"{self.path} {descriptor.digest}")

    def read_blob(self, descriptor: Descriptor, offset: int) -> Iterator[bytes]:
        """Read a blob from an offset on.

        Raises:
            StepFailed: it is missing, or has another size than its descriptor says.
        """
        path, start, size = self._place(_blob(descriptor.digest))
        if size != descriptor.size:
            raise StepFailed(
                f"{self.path}: the blob {descriptor.digest} has {size} bytes, and its manifest says "
                f"{descriptor.size}"
            )
        left = size - offset
        with path.open("rb") as file:
            file.seek(start + offset)
            while left > 0:
                chunk = file.read(min(left, _CHUNK))
                if not chunk:
                    raise StepFailed(f"{self.path} ends within the blob {descriptor.digest}")
                left -= len(chunk)
                yield chunk

    def _small(self, name: str) -> bytes:
        path, start, size = self._place(name)
        if size > MANIFEST_BYTES:
            raise StepFailed(f"{self.path}: {name} is larger than a manifest may be")
        with path.open("rb") as file:
            file.seek(start)
            return file.read(size)

    def _place(self, name: str) -> tuple[Path, int, int]:
        """The file in which something lies, where it starts there, and its size."""
        if self._pieces:
            if name not in self._pieces:
                raise StepFailed(f"{self.path} holds no {name}")
            return (self.path, *self._pieces[name])
        path = self.path / name
        if not path.is_file():
            raise StepFailed(f"{self.path} holds no {name}")
        return path, 0, path.stat().st_size


def _blob(digest: str) -> str:
    algorithm, _, value = digest.partition(":")
    return f"blobs/{algorithm}/{value}"


def _pieces(archive: Path) -> dict[str, tuple[int, int]]:
    """Where each regular file of an archive starts, and its size."""
    try:
        with tarfile.open(archive, "r:") as tar:
            return {
                member.name.removeprefix("./"): (member.offset_data, member.size)
                for member in tar
                if member.isreg()
            }
    except OSError as error:
        raise StepFailed(f"{archive} cannot be read: {error.strerror}") from error
    except tarfile.TarError as error:
        raise StepFailed(f"{archive} is no folder and no uncompressed tar archive") from error
