"""Root file systems of Debian packages: the lowest layer, and the userland of the Harness image.

No package's script runs, so nothing of the clock or the machine gets in. What the scripts would
have made and a service needs is made here: the certificate bundle, the loader's cache, the users,
and byte code that is never checked against a file's time.

Source: design §6.1, ADR-0119.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from jr2.errors import StepFailed

from .... import processes
from .. import recipe
from ..chroot import compile_python, run_inside
from . import sets
from .unpack import control_text, merge_usr, parse_control, unpack

_EMPTIED = ("etc/apt", "etc/dpkg", "var", "dev", "run", "tmp", "home", "root", "mnt", "media")
_REMOVED = ("etc/hostname", "etc/resolv.conf", "etc/fstab", "srv", "opt", "boot")
_MOUNTPOINTS = ("dev", "proc", "run", "sys", "tmp", "var/log", "var/tmp")
_OPEN_TO_ALL = 0o1777


def make_base(packages: Sequence[Path], root: Path) -> None:
    """Make the root file system of the lowest layer in an empty folder.

    Raises:
        StepFailed: a package cannot be extracted, or the Python of the root does not work.
    """
    merge_usr(root)
    unpack(packages, root)
    for name in (*_EMPTIED, *_REMOVED):
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).unlink(missing_ok=True)
    for name in _MOUNTPOINTS:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ("tmp", "var/tmp"):
        (root / name).chmod(_OPEN_TO_ALL)
    _write_status(packages, root)
    _write_users(root)
    bundle = b"".join(
        path.read_bytes().rstrip() + b"\n"
        for path in sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    )
    (root / recipe.CERTIFICATES).parent.mkdir(parents=True, exist_ok=True)
    (root / recipe.CERTIFICATES).write_bytes(bundle)
    _make_links(root, sets.BASE)
    compile_python(root, recipe.STANDARD_LIBRARY)
    run_inside(root, ["/sbin/ldconfig"])
    shutil.rmtree(root / "var/cache", ignore_errors=True)
    run_inside(root, [recipe.PYTHON, "-I", "-S", "-c", SELF_TEST])


def make_userland(packages: Sequence[Path], root: Path, base: Path, work: Path) -> None:
    """Make, in an empty folder, what the Harness image holds above the lowest layer.

    Args:
        packages: of the set above the base.
        root: the folder; it gets no file of the base but the loader's cache.
        base: the root file system of the lowest layer, on the same file system as `work`.
        work: a folder for a throw-away copy of both together.

    Raises:
        StepFailed: a package cannot be extracted.
    """
    unpack(packages, root)
    _write_status(packages, root)
    _make_links(root, sets.HARNESS)
    for name in ("run", "var/cache", "var/log"):
        shutil.rmtree(root / name, ignore_errors=True)
    overlay([base, root], work)
    run_inside(work, ["/sbin/ldconfig"])
    (root / "etc").mkdir(exist_ok=True)
    shutil.copyfile(work / "etc/ld.so.cache", root / "etc/ld.so.cache")
    shutil.rmtree(work)


def overlay(roots: Sequence[Path], target: Path) -> None:
    """Make a throw-away copy of root file systems, the later above the earlier, by hard links."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for root in roots:
        # A link `/bin` of a lower root is followed, so each root holds its files below `/usr`.
        done = processes.run(["cp", "-al", "--remove-destination", f"{root}/.", target])
        if done.returncode != 0:
            raise StepFailed(f"cannot copy {root}: {done.stderr.strip()}")


SELF_TEST = f"""
import ctypes, sqlite3, ssl, sys, zoneinfo
assert sys.version_info[:2] == {recipe.PYTHON_MINOR!r}, sys.version
assert ssl.create_default_context().cert_store_stats()["x509_ca"] > 50
assert sqlite3.connect(":memory:").execute("select 1").fetchone() == (1,)
zoneinfo.ZoneInfo("Europe/Zurich")
"""


def _make_links(root: Path, packages: sets.PackageSet) -> None:
    for path, target in packages.links.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)


def _write_status(packages: Sequence[Path], root: Path) -> None:
    # Scanners of images read the packages here when no dpkg database exists.
    status = root / "var/lib/dpkg/status.d"
    status.mkdir(parents=True)
    for package in packages:
        text = control_text(package)
        (status / parse_control(text)["Package"]).write_text(f"{text.rstrip()}\n\n")


def _write_users(root: Path) -> None:
    users = [
        ("root", 0, "/root"),
        *((name, uid, home) for name, (uid, home) in recipe.USERS.items()),
        ("nobody", 65534, "/nonexistent"),
    ]
    etc = root / "etc"
    etc.joinpath("passwd").write_text(
        "".join(f"{name}:x:{uid}:{uid}::{home}:/usr/sbin/nologin\n" for name, uid, home in users)
    )
    etc.joinpath("group").write_text("".join(f"{name}:x:{uid}:\n" for name, uid, _ in users))
    etc.joinpath("nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    home = root / recipe.HARNESS_HOME[1:]
    home.mkdir(parents=True)
    # A layer has no owners: a user whose home is here may write there all the same.
    home.chmod(_OPEN_TO_ALL)
