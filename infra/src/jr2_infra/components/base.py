"""What all wanted objects share: labels, the three annotations, and how a resource is named.

Source: design §5.3 (every object carries three annotations), spec/converge.md §5 (labels).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from jr2 import names

from ..closed_list import Kind
from ..resources import KubernetesResource

PULUMI_ANNOTATIONS: Final[Mapping[str, str]] = {
    "pulumi.com/patchFieldManager": names.FIELD_MANAGER,
    "pulumi.com/patchForce": "true",
    "pulumi.com/skipAwait": "true",
}
"""Without the first two each run is a manager of its own and its fields are never pruned; with the
third only `Rollout` waits."""

RESTRICTED: Final[Mapping[str, Any]] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
"""The container half of the `restricted` Pod Security Standard, and a read-only root."""

TMP_PATH: Final = "/tmp"  # noqa: S108 - a volume of the pod, which no other pod sees


def shared_labels() -> dict[str, str]:
    """Return the labels of an object that the Instances of a cluster share."""
    return {names.LABEL_MANAGED_BY: names.MANAGED_BY}


def instance_labels(instance: str) -> dict[str, str]:
    """Return the labels of an object of one Instance."""
    return {names.LABEL_INSTANCE: instance, **shared_labels()}


def wanted(
    kind: Kind,
    name: str,
    *,
    namespace: str | None = None,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
    **body: Any,
) -> dict[str, Any]:
    """Build one wanted object.

    Args:
        kind: its kind.
        name: its fixed name.
        namespace: where it lives; `None` for an object of the cluster.
        labels: its labels.
        annotations: what it carries beside the three of Pulumi.
        **body: everything beside `metadata`.
    """
    metadata: dict[str, Any] = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    metadata["labels"] = dict(labels)
    metadata["annotations"] = {**PULUMI_ANNOTATIONS, **(annotations or {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **body}


def resource_name(obj: Mapping[str, Any]) -> str:
    """Return the Pulumi name of an object, such as `deployment-jr2-orchestrator`."""
    return f"{obj['kind'].lower()}-{obj['metadata']['name']}"


def resource(
    component: str,
    obj: Mapping[str, Any],
    *,
    after: tuple[str, ...] = (),
    retain: bool = False,
) -> KubernetesResource:
    """Build the resource of a wanted object."""
    return KubernetesResource(
        name=resource_name(obj), object=obj, component=component, depends_on=after, retain=retain
    )


def encoded(values: Mapping[str, str]) -> dict[str, str]:
    """Return the `data` of a Secret."""
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
