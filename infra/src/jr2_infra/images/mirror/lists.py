"""The committed lists: `name=version=sha256` for each Debian package, one file for each set.

A build takes exactly these files, so the same sources and lists give the same image on any day.

Source: design §6.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_LINE = re.compile(r"([a-z0-9][a-z0-9.+-]+)=([0-9A-Za-z.+~:-]+)=([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, order=True)
class Package:
    """One `.deb`, named by its content.

    Args:
        name: of the Debian package.
        version: with its epoch, as Debian writes it.
        sha256: 64 hex digits of the file.
    """

    name: str
    version: str
    sha256: str

    @property
    def pinned(self) -> str:
        """How apt is asked for it."""
        return f"{self.name}={self.version}"


def file_name(package_set: str, architecture: str) -> str:
    """Return the name of a list below `requirements/`."""
    return f"debian-{package_set}.{architecture}.txt"


def parse(text: str) -> tuple[Package, ...]:
    """Read a list.

    Raises:
        ValueError: a line is not `name=version=sha256`; the number of the line stands in the text.
    """
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            match = _LINE.fullmatch(line.strip())
            if match is None:
                raise ValueError(f"line {number} is not name=version=sha256: {line.strip()!r}")
            found.append(Package(*match.groups()))
    return tuple(sorted(found))


def write(packages: Iterable[Package]) -> str:
    """Return the text of a list, sorted."""
    return "".join(f"{package.pinned}={package.sha256}\n" for package in sorted(packages))
