"""What is rolled out, and how a `Rollout` step names it.

Source: spec/converge.md §6.3 and §6.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jr2 import names

from .facts.images import ImageFacts
from .objects import Wants
from .parts import WORKLOADS, Part
from .rollout.workload import Workload


def orchestrator_workload(wants: Wants, node_images: Sequence[ImageFacts]) -> Workload:
    """Return what is rolled out for the Orchestrator."""
    digest, config = _digests_of(wants.refs.orchestrator, node_images)
    return Workload(
        layer="orchestrator",
        name=names.ORCHESTRATOR,
        namespace=wants.place.namespace,
        selector=f"{names.LABEL_APP}={names.ORCHESTRATOR}",
        image=wants.refs.orchestrator,
        digest=digest,
        config=config,
    )


def operator_workload(wants: Wants, node_images: Sequence[ImageFacts]) -> Workload:
    """Return what is rolled out for the operator."""
    digest, config = _digests_of(wants.refs.operator, node_images)
    return Workload(
        layer="operator",
        name=names.OPERATOR,
        namespace=names.SYSTEM_NAMESPACE,
        selector=f"{names.LABEL_CONTROL_PLANE}={names.CONTROL_PLANE}",
        image=wants.refs.operator,
        digest=digest,
        config=config,
    )


def part_workload(wants: Wants, part: Part, node_images: Sequence[ImageFacts]) -> Workload:
    """Return what is rolled out for a part that comes and goes."""
    kind, name = WORKLOADS[part.name]
    digest, config = _digests_of(part.image, node_images)
    return Workload(
        layer=part.name,
        name=name,
        namespace=wants.place.namespace,
        selector=f"{names.LABEL_APP}={name}",
        image=part.image,
        kind=kind,
        container=part.container,
        digest=digest,
        config=config,
    )


def workload_inputs(workload: Workload) -> dict[str, str]:
    """Return the inputs of a `Rollout` step."""
    inputs = {
        "layer": workload.layer,
        "part": workload.name,
        "namespace": workload.namespace,
        "selector": workload.selector,
        "image": workload.image,
    }
    # What stands by default is left out, so that an input that is new changes no step.
    if workload.kind != "Deployment":
        inputs["kind"] = workload.kind
    if workload.container:
        inputs["container"] = workload.container
    if workload.digest:
        inputs["digest"] = workload.digest
    if workload.config:
        inputs["config"] = workload.config
    return inputs


def workload_of(inputs: Mapping[str, Any]) -> Workload:
    """Return the workload that the inputs of a `Rollout` step name."""
    return Workload(
        layer=inputs["layer"],
        name=inputs["part"],
        namespace=inputs["namespace"],
        selector=inputs["selector"],
        image=inputs["image"],
        kind=inputs.get("kind", "Deployment"),
        container=inputs.get("container", ""),
        digest=inputs.get("digest"),
        config=inputs.get("config"),
    )


def _digests_of(ref: str, node_images: Sequence[ImageFacts]) -> tuple[str | None, str | None]:
    """Return the digests of an image's manifest and of its config, where they are known."""
    for item in node_images:
        if item.ref == ref:
            return item.held or item.archived, item.config
    return None, None
