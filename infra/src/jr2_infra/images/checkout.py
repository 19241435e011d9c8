"""The Kit images of a checkout, named by the content that goes into them.

`jr2 up` asks for them in each run, so this reads a few hundred small files and nothing else. The
same sources, pins and recipe give the same name, whatever machine, clock or folder; what does not
go into an image, such as documentation, does not change its name.

Source: design §6.1, spec/converge.md §7.1–7.2.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jr2 import names
from jr2.tree_hash import Entry, tree_hash

from .. import user_home
from .build import content, oci, recipe
from .mirror import lists

ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
"""What OCI calls the processors that Kit images are built for."""

_BUILD = Path(__file__).parent / "build"


@dataclass(frozen=True, slots=True, kw_only=True)
class KitImages:
    """The references of a checkout's Kit images."""

    orchestrator: str
    operator: str
    harness: str


def checkout_images(checkout: Path) -> KitImages:
    """Return the references of the Kit images that belong to the state of a checkout.

    Args:
        checkout: the root folder of the repository.

    Raises:
        OSError: a file of the checkout cannot be read.
    """
    return KitImages(
        orchestrator=image_ref(checkout, recipe.ORCHESTRATOR),
        operator=image_ref(checkout, recipe.OPERATOR),
        harness=image_ref(checkout, recipe.HARNESS),
    )


def built_platform() -> str:
    """Return the platform that the Kit images of a checkout are built for: this machine's."""
    machine = platform.machine()
    return f"linux/{ARCHITECTURES.get(machine, machine)}"


def image_ref(checkout: Path, image: recipe.KitImage) -> str:
    """Return the whole name of one Kit image of a checkout."""
    short = content_hash(checkout, image)[: names.SHORT_HASH]
    return f"{names.CHECKOUT_HOME}/{image.name}:{short}"


def content_hash(checkout: Path, image: recipe.KitImage) -> str:
    """Return the SHA-256 over everything that decides an image's content, as 64 hex digits."""
    return tree_hash(_inputs(checkout, image), salt=image.name)


def _inputs(checkout: Path, image: recipe.KitImage) -> Iterator[Entry]:
    for path, place in content.source_files(checkout, image):
        yield Entry(f"image/{path}", "file", place)
    pinned = checkout / "requirements"
    listed = [pinned / f"{name}.txt" for name in image.pins]
    # The lists of every architecture count, so a checkout has one name for an image everywhere.
    for name in image.lists:
        listed += pinned.glob(lists.file_name(name, "*"))
    for place in sorted(listed):
        yield Entry(f"requirements/{place.name}", "file", place)
    for place in sorted(_BUILD.rglob("*.py")):
        yield Entry(f"build/{place.relative_to(_BUILD).as_posix()}", "file", place)


def cache_folder() -> Path:
    """Return the folder that keeps archives and layers between builds."""
    named = os.environ.get("XDG_CACHE_HOME")
    caches = Path(named) if named else user_home.folder() / ".cache"
    return caches / "jr2" / "images"


def archive_path(ref: str) -> Path:
    """Return where `scripts/build-kit-images` puts the OCI archive of a reference."""
    name, _, tag = ref.rpartition("/")[2].partition(":")
    return cache_folder() / f"{name}-{tag}.oci.tar"


def sbom_path(ref: str) -> Path:
    """Return where the build puts what the image of a reference is made of."""
    archive = archive_path(ref)
    return archive.with_name(oci.sbom_name(archive.name))
