"""The lowest layer: Debian's Python, extracted from packages that the machine's own apt fetches.

mmdebstrap resolves and downloads with the machine's sources for the suite and extracts without
running a package's script, so nothing of the clock or the machine gets in. What the scripts would
have made and a service needs is made here: the certificate bundle, the loader's cache, the users,
and byte code that is never checked against a file's time.

Source: design §6.1.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from jr2.errors import StepFailed

from ... import processes
from . import recipe, sources_list
from .chroot import compile_python, run_inside

_EMPTIED = (
    "etc/apt",
    "etc/dpkg",
    "var/cache",
    "var/lib/apt",
    "var/lib/dpkg",
    "var/log",
    "dev",
    "run",
    "tmp",
)
_REMOVED = ("etc/hostname", "etc/resolv.conf", "etc/fstab", "lib32", "libx32")
_MOUNTPOINTS = ("dev", "proc", "run", "sys", "tmp", "var/log", "var/tmp")


def extract_debian(root: Path) -> tuple[str, ...]:
    """Make the root file system of the lowest layer and return its packages, `name=version` sorted.

    Args:
        root: a folder that does not exist yet.

    Raises:
        StepFailed: mmdebstrap failed; its last lines stand in the text.
    """
    sources = root.with_name(f"{root.name}.sources")
    sources.write_text(sources_list.for_suite(Path("/etc/apt"), recipe.DEBIAN_SUITE))
    argv = [
        "mmdebstrap",
        "--quiet",
        "--mode=root",
        "--format=directory",
        "--variant=extract",
        "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
        "--skip=cleanup/apt",
        f"--include={','.join(recipe.DEBIAN_PACKAGES)}",
        '--aptopt=Apt::Install-Recommends "false"',
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in recipe.LEFT_OUT),
        recipe.DEBIAN_SUITE,
        str(root),
    ]
    if sources.stat().st_size:
        argv.append(str(sources))
    done = processes.run(argv, env={**os.environ, "LC_ALL": "C.UTF-8", "SOURCE_DATE_EPOCH": "0"})
    sources.unlink()
    if done.returncode != 0:
        last = "\n".join(done.stderr.strip().splitlines()[-15:])
        raise StepFailed(f"mmdebstrap could not make the base of the Kit images:\n{last}")
    packages = _packages(root / "var/cache/apt/archives")
    _settle(root, packages)
    return tuple(f"{name}={version}" for name, version, _ in packages)


def _packages(archives: Path) -> list[tuple[str, str, str]]:
    """Name, version and control text of each package that was fetched, sorted by name."""
    found = []
    for package in sorted(archives.glob("*.deb")):
        control = processes.run(["dpkg-deb", "--field", package]).stdout
        fields = dict(line.split(": ", 1) for line in control.splitlines() if ": " in line)
        found.append((fields["Package"], fields["Version"], control))
    return sorted(found)


def _settle(root: Path, packages: list[tuple[str, str, str]]) -> None:
    for folder in _EMPTIED:
        shutil.rmtree(root / folder, ignore_errors=True)
    for name in _REMOVED:
        (root / name).unlink(missing_ok=True)
    for folder in _MOUNTPOINTS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for folder in ("tmp", "var/tmp"):
        (root / folder).chmod(0o1777)
    # Scanners of images read the packages here when no dpkg database exists.
    status = root / "var/lib/dpkg/status.d"
    status.mkdir(parents=True)
    for name, _, control in packages:
        (status / name).write_text(f"{control.rstrip()}\n\n")
    _write_users(root / "etc")
    bundle = b"".join(
        path.read_bytes().rstrip() + b"\n"
        for path in sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    )
    certificates = root / "etc/ssl/certs"
    certificates.mkdir(parents=True, exist_ok=True)
    (certificates / "ca-certificates.crt").write_bytes(bundle)
    compile_python(root, recipe.STANDARD_LIBRARY)
    run_inside(root, ["/sbin/ldconfig"])
    shutil.rmtree(root / "var/cache", ignore_errors=True)
    run_inside(root, [recipe.PYTHON, "-I", "-S", "-c", _SELF_TEST])


_SELF_TEST = """
import ctypes, sqlite3, ssl, sys, zoneinfo
assert sys.version_info[:2] == (3, 11), sys.version
assert ssl.create_default_context().cert_store_stats()["x509_ca"] > 50
assert sqlite3.connect(":memory:").execute("select 1").fetchone() == (1,)
zoneinfo.ZoneInfo("Europe/Zurich")
"""


def _write_users(etc: Path) -> None:
    users = [
        ("root", 0, "/root"),
        *((name, uid, "/tmp") for name, uid in recipe.USERS.items()),  # noqa: S108 - in the image
        ("nobody", 65534, "/nonexistent"),
    ]
    etc.joinpath("passwd").write_text(
        "".join(f"{name}:x:{uid}:{uid}::{home}:/usr/sbin/nologin\n" for name, uid, home in users)
    )
    etc.joinpath("group").write_text("".join(f"{name}:x:{uid}:\n" for name, uid, _ in users))
    etc.joinpath("nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
