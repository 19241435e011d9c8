"""The same sources give the same digest: at another path, as another user, in another year."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import BUILD, CHECKOUT, Image, run

pytestmark = pytest.mark.timeout(1800)


def copy_checkout(target: Path, umask: int, seconds: float) -> Path:
    """Copy what git would check out, under an umask and with one time on each file."""
    listed = run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=CHECKOUT
    )
    before = os.umask(umask)
    try:
        for name in filter(None, listed.split("\0")):
            source, place = CHECKOUT / name, target / name
            if source.is_file():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(source.read_bytes())
                place.chmod((0o777 if os.access(source, os.X_OK) else 0o666) & ~umask)
                os.utime(place, (seconds, seconds))
    finally:
        os.umask(before)
    return target


def build_in(
    copy: Path, cache: Path, *before: str, umask: int, **environment: str
) -> dict[str, str]:
    """Build all images of a copy without any layer of an earlier build, and return the digests."""
    # The packages themselves are taken over: they are named, and checked, by their digest.
    debs = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "jr2/images/debs"
    shutil.copytree(debs, cache / "jr2/images/debs")
    uv_cache = run([Path(sys.executable).with_name("uv"), "cache", "dir"]).strip()
    # What names a mirror, a proxy or a certificate stays the machine's.
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("LC_")},
        **environment,
        "PYTHONPATH": f"{copy}/infra/src:{copy}/runtime/kit/src",
        "UV_CACHE_DIR": uv_cache,
        "XDG_CACHE_HOME": str(cache),
    }
    command = [*before, sys.executable, "-m", "jr2_infra.images"]
    for more in ([], ["--list"]):
        done = subprocess.run(
            [*command, *more],
            cwd=copy,
            env=environment,
            umask=umask,
            capture_output=True,
            text=True,
            timeout=850,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert all(Path(item["archive"]).is_relative_to(cache) for item in listed)
    return {item["image"]: item["digest"] for item in listed}


def test_another_path_umask_locale_and_user_give_the_same_digests(
    images: dict[str, Image], tmp_path: Path
) -> None:
    if shutil.which("faketime") is None:
        pytest.skip("needs faketime — run: apt-get install faketime")
    plain = build_in(
        copy_checkout(tmp_path / "plain", 0o022, 1_000_000_000),
        tmp_path / "cache-plain",
        umask=0o022,
        HOME="/root",
        LANG="C.UTF-8",
    )
    other = build_in(
        copy_checkout(tmp_path / "a/much deeper/place", 0o077, 2_000_000_000),
        tmp_path / "cache-other",
        *("faketime", "2035-05-05 05:05:05"),
        umask=0o077,
        HOME=str(tmp_path),
        USER="somebody",
        LANG="tr_TR.UTF-8",
        LC_ALL="tr_TR.UTF-8",
        TZ="Pacific/Kiritimati",
        SOURCE_DATE_EPOCH="999999999",
        # In that year no certificate of an index is valid; the first build fetched the wheels.
        UV_OFFLINE="1",
    )
    assert plain == other == {image.name: image.digest for image in images.values()}


def test_built_again_it_is_the_same(images: dict[str, Image]) -> None:
    run([BUILD, "--force"])
    again = {item["image"]: item["digest"] for item in json.loads(run([BUILD, "--list"]))}
    assert again == {image.name: image.digest for image in images.values()}
