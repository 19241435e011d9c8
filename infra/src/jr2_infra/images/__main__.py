"""Build the Kit images of this checkout: `python -m jr2_infra.images`.

It builds what has no archive yet, so a second run is done at once. It needs root on Debian or
Ubuntu, since the layers are made of Debian packages and their programs run in a chroot.

Source: design §6.1.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uv

from jr2 import names
from jr2.errors import Jr2Error, Refusal, StepFailed

from . import checkout, store
from .build import content, oci, recipe
from .build.debian import sets
from .build.image import Builder
from .mirror import lists, sources_list
from .mirror.archive import Archive
from .mirror.refresh import resolve_sets

_KEPT_SECONDS = 30 * 86_400
"""How long a Debian package is kept that no build asks for."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the Kit images and return the exit code."""
    parser = argparse.ArgumentParser(prog="build-kit-images", description=__doc__)
    parser.add_argument("--force", action="store_true", help="build although an archive is there")
    parser.add_argument(
        "--refresh",
        action="store_true",
        help="resolve the Debian packages of all architectures anew and write "
        "requirements/debian-*.txt",
    )
    parser.add_argument(
        "--kit",
        type=Path,
        metavar="FOLDER",
        help="build no image; put the package jr2 into FOLDER as the image of the Orchestrator "
        "has it, with the machine code of its kernel",
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="build nothing; print name, digest, archive and SBOM of each image as JSON",
    )
    options = parser.parse_args(arguments)
    try:
        root = _find_checkout()
        if options.list:
            print(json.dumps(_listed(root), indent=2))
        elif options.kit is not None:
            _lay_out_kit(root, options.kit)
        else:
            _build_all(root, force=options.force, refresh=options.refresh)
    except Jr2Error as error:
        print(error.printed, file=sys.stderr)
        return 1
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _find_checkout() -> Path:
    root = Path(__file__).resolve().parents[4]
    if not root.joinpath("requirements", "kit.txt").is_file():
        raise StepFailed(
            "jr2_infra is not installed from a checkout, so there are no Kit images to build — "
            "released ones are pulled"
        )
    return root


def _listed(root: Path) -> list[dict[str, str | None]]:
    found: list[dict[str, str | None]] = []
    for image in recipe.KIT_IMAGES:
        ref = checkout.image_ref(root, image)
        archive, document = checkout.archive_path(ref), checkout.sbom_path(ref)
        built = _is_built(ref)
        found.append(
            {
                "image": image.name,
                "ref": ref,
                "digest": oci.archived_digest(archive) if built else None,
                "archive": str(archive) if built else None,
                "sbom": str(document) if built else None,
            }
        )
    return found


def _build_all(root: Path, *, force: bool, refresh: bool) -> None:
    wanted = {image: checkout.image_ref(root, image) for image in recipe.KIT_IMAGES}
    if not force and not refresh and all(_is_built(ref) for ref in wanted.values()):
        for image, ref in wanted.items():
            _say(f"{image.name}: {ref} (built already)")
        return
    with _builder(root) as builder:
        if refresh:
            for each in recipe.PLATFORMS:
                _refresh(root, each, _archive(each))
        for image in recipe.KIT_IMAGES:
            ref = checkout.image_ref(root, image)
            if force or not _is_built(ref):
                _build_one(builder, image)
            else:
                _say(f"{image.name}: {ref} (built already)")
        store.prune_archives(checkout.cache_folder())


@contextmanager
def _builder(root: Path) -> Iterator[Builder]:
    """Hold the lock of the cache, and remove at the end what no build asked for lately."""
    _require_machine()
    folder = checkout.cache_folder()
    with store.locked(folder, lambda: _say("another build of Kit images is running; waiting")):
        architecture = checkout.ARCHITECTURES[platform.machine()]
        builder = Builder(
            checkout=root,
            architecture=architecture,
            uv=Path(uv.find_uv_bin()),
            cache=store.LayerCache(folder / "layers"),
            archive=_archive(architecture),
            say=_say,
        )
        yield builder
        builder.cache.prune()
        builder.archive.prune(_KEPT_SECONDS, time.time())


def _archive(architecture: str) -> Archive:
    mirror = os.environ.get(sources_list.MIRROR_VARIABLE)
    sources = sources_list.for_suite(Path("/etc/apt"), sets.SUITE, mirror=mirror)
    return Archive(checkout.cache_folder(), architecture, sources, _say)


def _lay_out_kit(root: Path, target: Path) -> None:
    with _builder(root) as builder:
        made = builder.compiled() / "root" / names.KIT_PATH[1:]
        shutil.copytree(made, target, dirs_exist_ok=True)
    for path, place in content.kit_files(root):
        into = target / Path(path).relative_to(names.KIT_PATH[1:])
        into.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(place, into)


def _refresh(root: Path, architecture: str, archive: Archive) -> None:
    _say(f"Debian {sets.SUITE}: resolving the packages for {architecture}")
    for name, packages in resolve_sets(archive).items():
        path = root / "requirements" / lists.file_name(name, architecture)
        path.write_text(lists.write(packages))


def _is_built(ref: str) -> bool:
    return checkout.archive_path(ref).is_file() and checkout.sbom_path(ref).is_file()


def _build_one(builder: Builder, image: recipe.KitImage) -> None:
    """Build an image under the name of what went in, also when its sources change meanwhile."""
    began = time.monotonic()
    ref = checkout.image_ref(builder.checkout, image)
    while True:
        archive = checkout.archive_path(ref)
        was_there = archive.is_file()
        archived = builder.build(
            image,
            ref=ref,
            content_hash=checkout.content_hash(builder.checkout, image),
            target=archive,
        )
        now = checkout.image_ref(builder.checkout, image)
        if now == ref:
            break
        if not was_there:
            archive.unlink()
            checkout.sbom_path(ref).unlink()
        _say(f"{image.name}: its sources changed while it was built; building again")
        ref = now
    _say(
        f"{image.name}: {ref} {archived.digest[:19]} — {archived.unpacked / 2**20:.0f} MiB "
        f"unpacked, {time.monotonic() - began:.1f} s"
    )


def _require_machine() -> None:
    needs = "Kit images are built as root on Debian or Ubuntu, from Debian packages"
    if platform.machine() not in checkout.ARCHITECTURES:
        raise Refusal(f"Kit images are built for amd64 and arm64, not for {platform.machine()}")
    if shutil.which("apt-get") is None:
        raise Refusal(
            f"{needs}, and this machine has no apt-get — set `kit_registry`, or use a released "
            "version of jr2"
        )
    if os.geteuid() != 0:
        raise Refusal(f"{needs}, and you are not root — run: sudo scripts/build-kit-images")


if __name__ == "__main__":
    sys.exit(main())
