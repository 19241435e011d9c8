"""Compare versions as the Converge does: of Kits and of Kubernetes.

Source: spec/converge.md §2.5 (Version compare).
"""

from __future__ import annotations

import re
from typing import Final

_RELEASE: Final = re.compile(r"^v?(\d+)\.(\d+)")


def is_newer(version: str, other: str) -> bool:
    """Say whether a Kit version is newer than another; a part that is no number counts as 0."""
    first, second = _parts(version), _parts(other)
    length = max(len(first), len(second))
    return _padded(first, length) > _padded(second, length)


def kubernetes_release(version: str) -> tuple[int, int] | None:
    """Return major and minor of a Kubernetes version such as `v1.36.3-eks-1`, or `None`."""
    found = _RELEASE.match(version)
    return (int(found[1]), int(found[2])) if found else None


def _parts(version: str) -> list[int]:
    return [int(part) if part.isdecimal() else 0 for part in re.split(r"[.-]", version)]


def _padded(parts: list[int], length: int) -> list[int]:
    return parts + [0] * (length - len(parts))
