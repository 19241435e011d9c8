"""Versions as the programs print them, and the ranges of them that will do.

A version is compared by its numbers alone; what follows the numbers (`-rc.1`, `+unknown`,
`~ds1`) makes no difference, but for a pre-release, which counts as older than its release.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SHAPE = re.compile(r"^v?(\d+(?:\.\d+)*)(?:-(?P<pre>(?:alpha|beta|rc)[\w.]*))?")


def parse(text: str) -> tuple[int, int, int, int] | None:
    """Read a version: three numbers, and 0 for a pre-release or 1 for a release.

    Returns:
        `None` when the text does not start with a version.
    """
    found = _SHAPE.match(text)
    if found is None:
        return None
    numbers = [int(part) for part in found.group(1).split(".")][:3]
    numbers += [0] * (3 - len(numbers))
    return numbers[0], numbers[1], numbers[2], 0 if found.group("pre") else 1


def next_patch(version: str) -> str:
    """The first version after `version` that is not it: `4.34.2` gives `4.34.3`."""
    read = parse(version)
    assert read is not None
    return f"{read[0]}.{read[1]}.{read[2] + 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The versions from `at_least` up to, and without, `below`."""

    at_least: str
    below: str

    def holds(self, version: str) -> bool:
        """Tell whether a printed version lies in the range; an unreadable one does not."""
        read, low, high = parse(version), parse(self.at_least), parse(self.below)
        assert low is not None
        assert high is not None
        # A pre-release of the upper bound is already what the bound keeps out.
        return read is not None and low <= read and read[:3] < high[:3]

    def __str__(self) -> str:
        return f">= {self.at_least}, < {self.below}"
