"""What all wanted objects share: labels, the three annotations, and how a resource is named.

Source: design §5.3 (every object carries three annotations), spec/converge.md §5 (labels).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from jr2 import names
from jr2.errors import Refusal

from ..closed_list import Kind
from ..resources import KubernetesResource

PULUMI_ANNOTATIONS: Final[Mapping[str, str]] = {
    "pulumi.com/patchFieldManager": names.FIELD_MANAGER,
    "pulumi.com/patchForce": "true",
    "pulumi.com/skipAwait": "true",
}
"""Without the first two each run is a manager of its own and its fields are never pruned; with the
third only `Rollout` waits."""

_LONGEST_ANNOTATIONS: Final = 256 * 1024
"""Bytes of all annotations of one object, keys and values."""


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

    Raises:
        Refusal: its annotations are longer than Kubernetes takes.
    """
    metadata: dict[str, Any] = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    metadata["labels"] = dict(labels)
    metadata["annotations"] = {**PULUMI_ANNOTATIONS, **(annotations or {})}
    _require_short(f"{kind.kind} {name}", metadata["annotations"])
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **body}


def _require_short(what: str, annotations: Mapping[str, str]) -> None:
    sizes = {key: len(f"{key}{value}".encode()) for key, value in annotations.items()}
    if sum(sizes.values()) > _LONGEST_ANNOTATIONS:
        raise Refusal(
            f"the annotations of {what} have {sum(sizes.values())} bytes, and Kubernetes takes "
            f"{_LONGEST_ANNOTATIONS}: {max(sizes, key=sizes.__getitem__)} is the largest"
        )


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
