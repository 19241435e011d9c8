"""Nodes as their kubelets report them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def node(
    arch: str = "amd64",
    *,
    name: str = "n1",
    labels: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": spec,
        "status": {
            "nodeInfo": {"operatingSystem": "linux", "architecture": arch},
            "allocatable": dict(allocatable or {"cpu": "4", "memory": "8Gi"}),
        },
    }
