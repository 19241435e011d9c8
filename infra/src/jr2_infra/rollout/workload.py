"""What is rolled out, and how the lines and the error of its rollout name it.

Source: spec/converge.md §6.3 and §6.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

WorkloadKind = Literal["Deployment", "DaemonSet", "StatefulSet"]

LIMIT_SECONDS: Final = 180
"""How long the pods of a rollout may take until they are ready, pulls of images not counted."""

MAKERS: Final[dict[WorkloadKind, str]] = {
    "Deployment": "ReplicaSet",
    "DaemonSet": "DaemonSet",
    "StatefulSet": "StatefulSet",
}
"""Which object makes the pods of a workload, as the error names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is rolled out.

    Args:
        layer: the word of the lines, such as `orchestrator`.
        name: the object, such as `jr2-orchestrator`.
        namespace: where it lives.
        selector: the labels of its pods, `key=value`.
        image: the image that its containers must run.
        kind: what kind of object it is.
        container: the one container that must run `image`; empty when all must.
        digest: the digest of that image's manifest, where it is known.
        config: the digest of that image's config, where it is known.
    """

    layer: str
    name: str
    namespace: str
    selector: str
    image: str
    kind: WorkloadKind = "Deployment"
    container: str = ""
    digest: str | None = None
    config: str | None = None
