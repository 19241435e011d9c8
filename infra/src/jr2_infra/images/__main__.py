"""Build the Kit images of this checkout: `python -m jr2_infra.images`.

It builds what has no archive yet, so a second run is done at once. It needs root on Debian or
Ubuntu, since the lowest layer is made of Debian packages.

Source: design §6.1.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import uv

from jr2.errors import Jr2Error, StepFailed

from .. import processes
from . import checkout, store
from .build import oci, recipe
from .build.image import Builder

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the Kit images and return the exit code."""
    parser = argparse.ArgumentParser(prog="build-kit-images", description=__doc__)
    parser.add_argument("--force", action="store_true", help="build although an archive is there")
    parser.add_argument(
        "--refresh",
        action="store_true",
        help="resolve the Debian packages anew and write requirements/debian-base.txt",
    )
    options = parser.parse_args(arguments)
    try:
        _build_all(_find_checkout(), force=options.force, refresh=options.refresh)
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


def _build_all(root: Path, *, force: bool, refresh: bool) -> None:
    wanted = {image: checkout.image_ref(root, image) for image in recipe.KIT_IMAGES}
    if not force and not refresh and all(_is_built(ref) for ref in wanted.values()):
        for image, ref in wanted.items():
            _say(f"{image.name}: {ref} (built already)")
        return
    _require_machine()
    folder = checkout.cache_folder()
    with store.locked(folder, lambda: _say("another build of Kit images is running; waiting")):
        builder = Builder(
            checkout=root,
            architecture=_ARCHITECTURES[platform.machine()],
            uv=Path(uv.find_uv_bin()),
            cache=store.LayerCache(folder / "layers"),
            say=_say,
        )
        if refresh:
            builder.refresh_debian()
        for image in recipe.KIT_IMAGES:
            ref = checkout.image_ref(root, image)
            if force or not _is_built(ref):
                _build_one(builder, image)
            else:
                _say(f"{image.name}: {ref} (built already)")
        for package in builder.debian_drift():
            _say(
                f"note: Debian gives {package}, requirements/debian-base.txt lists another version"
            )
        builder.cache.prune()
        store.prune_archives(folder)


def _is_built(ref: str) -> bool:
    return checkout.archive_path(ref).is_file()


def _build_one(builder: Builder, image: recipe.KitImage) -> None:
    """Build an image under the name of what went in, also when its sources change meanwhile."""
    began = time.monotonic()
    ref = checkout.image_ref(builder.checkout, image)
    while True:
        archive = checkout.archive_path(ref)
        archived: oci.Archived = builder.build(image, ref=ref, target=archive)
        now = checkout.image_ref(builder.checkout, image)
        if now == ref:
            break
        archive.unlink()
        _say(f"{image.name}: its sources changed while it was built; building again")
        ref = now
    _say(
        f"{image.name}: {ref} {archived.digest[:19]} — {archived.unpacked / 2**20:.0f} MiB "
        f"unpacked, {time.monotonic() - began:.1f} s"
    )


def _require_machine() -> None:
    if platform.machine() not in _ARCHITECTURES:
        raise StepFailed(f"Kit images are not built for {platform.machine()}")
    if shutil.which("dpkg-deb") is None or shutil.which("apt-get") is None:
        raise StepFailed(
            "Kit images are built from Debian packages, which needs Debian or Ubuntu — "
            "set `kit_registry`, or use a released version of jr2"
        )
    if os.geteuid() != 0:
        raise StepFailed("Kit images are built as root — run: sudo scripts/build-kit-images")
    if shutil.which("mmdebstrap") is None:
        command = ["apt-get", "install", "--yes", "--no-install-recommends", "mmdebstrap"]
        _say(f"mmdebstrap is missing; running: {' '.join(command)}")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        processes.run(["apt-get", "update", "-qq"], env=environment)
        if processes.run(command, env=environment).returncode != 0:
            raise StepFailed(f"mmdebstrap cannot be installed — run: {' '.join(command)}")


if __name__ == "__main__":
    sys.exit(main())
