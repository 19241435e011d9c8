"""Debian packages from the mirrors that the machine's own apt knows, kept by their digest.

apt runs on folders of its own: nothing of the machine's package database is read or changed, and
apt checks the mirror's signatures. Each file is then compared with the committed digest, and what
was fetched once is never fetched again.

Source: design §6.1, ADR-0119.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from jr2.errors import StepFailed

from ... import processes
from ..build.debian import sets
from ..build.debian.unpack import read_control
from . import sources_list
from .lists import Package

_REFRESH = "scripts/build-kit-images --refresh"
_INSTALL = re.compile(r"^Inst (\S+) \((\S+) ", re.MULTILINE)


class Archive:
    """Packages below `folder`: `debs/<sha256>.deb`, and apt's own files in `apt/<architecture>/`.

    Args:
        folder: kept between builds; made when absent.
        architecture: Debian's name of it, which is the OCI one.
        sources: apt's sources in the deb822 form; empty where the machine has none for the suite.
        say: prints one line about what takes long.
    """

    def __init__(
        self, folder: Path, architecture: str, sources: str, say: Callable[[str], None]
    ) -> None:
        self._debs = folder / "debs"
        self._apt = folder / "apt" / architecture
        self._architecture = architecture
        self._sources = sources
        self._say = say
        self._updated = False
        self._debs.mkdir(parents=True, exist_ok=True)

    def fetch(self, packages: Sequence[Package]) -> list[Path]:
        """Return the file of each listed package, in the order of the list.

        Raises:
            StepFailed: a mirror no longer has a listed version, gives another file under it, or
                cannot be reached.
        """
        missing = [package for package in packages if not self._holds(package)]
        if missing:
            self._say(f"Debian {sets.SUITE}: fetching {len(missing)} packages")
            self._update()
            self._require_versions(missing)
            got = {digest for digest, _ in self._download([item.pinned for item in missing])}
            changed = [package.pinned for package in missing if package.sha256 not in got]
            if changed:
                raise StepFailed(
                    f"Debian's mirror gives another file than the lists commit to: "
                    f"{', '.join(changed)} — look for the cause; only then {_REFRESH}"
                )
        return [self._path(package.sha256) for package in packages]

    def resolve(self, asks: Iterable[str]) -> tuple[Package, ...]:
        """Return what asking for packages installs today, each with the digest of its file.

        Raises:
            StepFailed: apt cannot resolve it, or a mirror cannot be reached.
        """
        self._update()
        planned = self._run("apt-get", "--simulate", "install", *sorted(asks))
        pinned = [f"{name}={version}" for name, version in _INSTALL.findall(planned)]
        found = []
        for digest, path in self._download(pinned):
            control = read_control(path)
            found.append(Package(control["Package"], control["Version"], digest))
        return tuple(sorted(found))

    def prune(self, seconds: float, now: float) -> None:
        """Remove packages that no build used for so many seconds."""
        for path in self._debs.glob("*.deb"):
            if now - path.stat().st_mtime > seconds:
                path.unlink()

    def _path(self, digest: str) -> Path:
        return self._debs / f"{digest}.deb"

    def _holds(self, package: Package) -> bool:
        path = self._path(package.sha256)
        if not path.is_file():
            return False
        if _sha256(path) != package.sha256:
            path.unlink()
            return False
        os.utime(path)
        return True

    def _download(self, pinned: Sequence[str]) -> list[tuple[str, Path]]:
        """Fetch packages, and return digest and place of each."""
        target = self._apt / "download"
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        self._run("apt-get", "download", *pinned, cwd=target)
        kept = []
        for path in sorted(target.glob("*.deb")):
            digest = _sha256(path)
            path.replace(self._path(digest))
            kept.append((digest, self._path(digest)))
        target.rmdir()
        return kept

    def _require_versions(self, packages: Sequence[Package]) -> None:
        listed = self._run("apt-cache", "madison", *(package.name for package in packages))
        rows = [line.split("|") for line in listed.splitlines()]
        offered = {f"{row[0].strip()}={row[1].strip()}" for row in rows if len(row) > 2}
        gone = [package.pinned for package in packages if package.pinned not in offered]
        if gone:
            raise StepFailed(
                f"Debian's mirror no longer has {', '.join(gone)}, which the lists "
                f"requirements/debian-*.{self._architecture}.txt commit to — resolve them anew: "
                f"{_REFRESH}"
            )

    def _update(self) -> None:
        if not self._updated:
            self._configure()
            self._run("apt-get", "update")
            self._updated = True

    def _configure(self) -> None:
        for name in ("lists/partial", "archives/partial", "conf.d", "preferences.d", "trusted"):
            (self._apt / name).mkdir(parents=True, exist_ok=True)
        (self._apt / "status").write_text("")
        if not self._sources:
            raise StepFailed(
                f"no apt source of this machine serves Debian {sets.SUITE} — set "
                f"{sources_list.MIRROR_VARIABLE} to the address of a Debian mirror "
                "(its key: apt-get install debian-archive-keyring)"
            )
        (self._apt / "debian.sources").write_text(self._sources)
        (self._apt / "apt.conf").write_text(_APT_CONF.format(folder=self._apt))

    def _run(self, *argv: str, cwd: Path | None = None) -> str:
        options = [f"--option=APT::Architecture={self._architecture}"]
        options.append(f"--option=APT::Architectures={self._architecture}")
        done = processes.run(
            [argv[0], *options, *argv[1:]],
            env={**os.environ, "APT_CONFIG": str(self._apt / "apt.conf"), "LC_ALL": "C.UTF-8"},
            cwd=cwd,
        )
        if done.returncode != 0:
            last = "\n".join(done.stderr.strip().splitlines()[-15:])
            raise StepFailed(f"{argv[0]} {argv[1]} failed for Debian {sets.SUITE}:\n{last}")
        return done.stdout


_APT_CONF = """\
Dir::State "{folder}";
Dir::State::lists "{folder}/lists";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}";
Dir::Cache::archives "{folder}/archives";
Dir::Etc::sourcelist "{folder}/debian.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::main "/dev/null";
Dir::Etc::parts "{folder}/conf.d";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "{folder}/preferences.d";
Acquire::Languages "none";
APT::Get::Assume-Yes "true";
APT::Install-Recommends "false";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
pkgCacheGen::ForceEssential ",";
quiet "2";
"""


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
