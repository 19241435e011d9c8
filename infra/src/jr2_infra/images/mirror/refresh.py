"""The lists of Debian packages, resolved anew: the one place where a version is chosen.

Source: design §6.1, ADR-0119.
"""

from __future__ import annotations

from ..build.debian.sets import SETS
from .archive import Archive
from .lists import Package


def resolve_sets(archive: Archive) -> dict[str, tuple[Package, ...]]:
    """Return what each set of packages is made of today, by the name of the set.

    Each set is resolved together with those below it and holds what they do not, so one package
    has one version in all of them.

    Raises:
        StepFailed: apt cannot resolve a set, or a mirror cannot be reached.
    """
    found: dict[str, tuple[Package, ...]] = {}
    for wanted in SETS:
        asks: list[str] = []
        left_out: set[str] = set()
        for each in wanted.from_the_lowest():
            asks += each.asks
            left_out = (left_out | each.drops) - set(each.asks)
            left_out |= {package.name for package in found.get(each.name, ())}
        found[wanted.name] = tuple(
            package for package in archive.resolve(asks) if package.name not in left_out
        )
    return found
