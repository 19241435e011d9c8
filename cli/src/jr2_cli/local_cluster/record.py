"""What is noted of the cluster for as long as it exists.

Source: design §7.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from .layout import Layout


class Record(BaseModel):
    """What `create` notes about the cluster.

    Args:
        kubernetes: the version of its API server, without `v`.
        created_at: seconds since 1970.
        kubeconfigs: the files that the context was put into.
        stores: the namespaces that had a store of a Repo cache before; `None` when nobody noted it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kubernetes: str
    created_at: float
    kubeconfigs: tuple[Path, ...] = ()
    stores: tuple[str, ...] | None = None


def read_record(files: Layout) -> Record | None:
    """What `create` noted; `None` when there is no cluster, or we may not read it."""
    try:
        return Record.model_validate_json(files.record.read_bytes())
    except (OSError, ValueError):
        return None
