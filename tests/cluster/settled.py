"""What follows a change of the cluster a moment later, and what is written there by whom."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.waiting import wait_for


def wait_for_account(kubectl: Callable[..., str], namespace: str) -> None:
    """Wait until a namespace that was just made takes pods: a controller makes their account.

    Args:
        kubectl: runs kubectl and returns what it printed.
        namespace: the namespace.
    """
    words = (
        "-n",
        namespace,
        "get",
        "serviceaccount",
        "default",
        "--ignore-not-found",
        "-o",
        "name",
    )
    wait_for(f"the account of pods in {namespace}", lambda: kubectl(*words).strip())


def written(item: Mapping[str, Any]) -> str:
    """Return what changes with each write of an object, but for those of its status.

    Controllers write a status whenever a pod goes or a probe is late, and each write moves the
    resourceVersion. Who wrote the rest, and when, stands in `managedFields`.
    """
    metadata = item["metadata"]
    if "status" not in item:
        return str(metadata["resourceVersion"])
    fields = [
        one for one in metadata.get("managedFields") or [] if one.get("subresource") != "status"
    ]
    rest = {key: value for key, value in item.items() if key not in ("status", "metadata")}
    kept = {
        key: value
        for key, value in metadata.items()
        if key not in ("resourceVersion", "managedFields")
    }
    return json.dumps([rest, kept, fields], sort_keys=True)
