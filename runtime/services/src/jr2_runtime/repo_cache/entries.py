"""What one node says of a Repo: its own entry in the status, and whether it stands there.

Each node owns its entry and no other. The functions are pure: a Repo as the API gave it goes in.

Source: spec/converge.md §11 (Repo), spec/runtime.md §6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jr2 import names

NO_CLONES: Final = "this Repo cache keeps no clones yet"

Repo = Mapping[str, Any]


def wanted_entry(repo: Repo, node: str) -> dict[str, Any]:
    """Return what a node says of a Repo: it holds no clone, for this generation of the Repo."""
    return {
        "node": node,
        "present": False,
        "synced": False,
        "observedGeneration": int(repo["metadata"].get("generation") or 0),
        "lastError": NO_CLONES,
    }


def is_said(repo: Repo, node: str) -> bool:
    """Whether the status of a Repo already has the entry of a node as it should be."""
    entries = (repo.get("status") or {}).get("nodes") or []
    found = next((entry for entry in entries if entry.get("node") == node), None)
    return found == wanted_entry(repo, node)


def status_patch(repo: Repo, node: str) -> dict[str, Any]:
    """Return what is applied to the status of a Repo: the entry of one node alone."""
    metadata = repo["metadata"]
    return {
        "apiVersion": f"{names.API_GROUP}/{names.API_VERSION}",
        "kind": "Repo",
        # With the uid, a Repo that was deleted and made again is not taken for the one of before.
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
        },
        "status": {"nodes": [wanted_entry(repo, node)]},
    }
