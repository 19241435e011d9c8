"""Which file of a project's releases holds a program, and the sum that it must have.

Addresses are templates of the catalogue. Sums are committed in `sums.json`, by asset, version and
platform; `scripts/release-sums` writes them on a machine that reaches the release hosts. A file
whose sum is not committed is never fetched: what cannot be checked is not run.

Source: design §7, ADR-0111.
"""

from __future__ import annotations

import importlib.resources
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

SUMS_FILE: Final = "sums.json"

_GO_MACHINES: Final = MappingProxyType(
    {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """An operating system and a processor, as Go names them."""

    os: str
    arch: str

    def __str__(self) -> str:
        return f"{self.os}/{self.arch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Where a project publishes a program.

    Args:
        asset: the name of the published file's row in `sums.json`; programs that lie in one
            archive share it.
        address: the address of the file, a template of `version`, `os` and `arch`.
        member: the path of the program in the archive, the same kind of template; `None` when
            the file is the program itself.
        spells: how the project spells processors that it does not call as Go does:
            (Go's word, its word).
    """

    asset: str
    address: str
    member: str | None = None
    spells: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A file that can be fetched and checked.

    Args:
        address: where it is.
        sha256: 64 hex digits.
        member: the path of the program in it; `None` when it is the program itself.
    """

    address: str
    sha256: str
    member: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Why the official release is not asked, as the end of a sentence."""

    reason: str


Sums = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Asset → version → platform → sha256."""


def committed_sums() -> Sums:
    """Read the sums that are committed."""
    text = (importlib.resources.files(__package__) / SUMS_FILE).read_text()
    read: Sums = json.loads(text)
    return read


def this_platform() -> Platform:
    """The platform of this machine."""
    machine = platform.machine().lower()
    return Platform(os=platform.system().lower(), arch=_GO_MACHINES.get(machine, machine))


def address_of(release: Release, version: str, where: Platform) -> str:
    """The address of the file of a release."""
    return _filled(release.address, release, version, where)


def choose(release: Release | None, version: str, where: Platform, sums: Sums) -> Asset | Skipped:
    """Say what could be fetched of a program, or why nothing.

    Args:
        release: where its project publishes it; `None` when it publishes no binary.
        version: the pinned version.
        where: the platform that it must run on.
        sums: the committed sums.
    """
    if release is None:
        return Skipped(reason="its project publishes no binary of it")
    versions = sums.get(release.asset, {})
    if version not in versions and versions:
        others = ", ".join(sorted(versions))
        return Skipped(reason=f"the committed sums are for version {others}, not {version}")
    sha256 = versions.get(version, {}).get(str(where))
    if sha256 is None:
        return Skipped(reason=f"no sum of it is committed for {where}")
    member = release.member
    return Asset(
        address=address_of(release, version, where),
        sha256=sha256,
        member=None if member is None else _filled(member, release, version, where),
    )


def _filled(template: str, release: Release, version: str, where: Platform) -> str:
    arch = dict(release.spells).get(where.arch, where.arch)
    return template.format(version=version, os=where.os, arch=arch)
