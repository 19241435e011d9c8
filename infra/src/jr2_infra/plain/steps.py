"""Steps in a state that is remembered: which are due now, and where they find their run.

Under `jr2 up` the checkpoint is derived from the facts, so a step that must be done differs from
it. The state of a plain stack only remembers what was asked for last time: a pod that is not ready
and an image that is gone make no difference in it. So each step says as an input whether the facts
call for it, and a step that is due counts as changed. ProviderPreflight is due in each run. The
nonce names the folder of the run, where the step finds what it needs.

Nor does such a state know what somebody changed by hand. What the plan names as drift gets a step
that applies the object again, before the object's own resource. The next run no longer declares
that step, and its deletion does nothing.

Source: design §5.2 (Plain `pulumi up`) and §5.4, ADR-0123.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, Final

from ..dynamic import DUE, IS_DUE, NONCE, NOT_DUE
from ..plan import HEALING
from ..resources import Component, DynamicResource, KubernetesResource, Program

PREVIEW: Final = "preview"
"""The nonce of a preview, which does no step."""


def with_runs(program: Program, nonce: str) -> Program:
    """Return the program with the nonce of this run and what is due in it.

    Args:
        program: what is wanted, with what the facts say of each step.
        nonce: names the run.
    """
    resources: list[KubernetesResource | DynamicResource] = []
    for resource in program.resources:
        if isinstance(resource, DynamicResource):
            due = IS_DUE if resource.derived != resource.inputs else NOT_DUE
            inputs = {**resource.inputs, NONCE: nonce, DUE: due}
            resource = dataclasses.replace(resource, inputs=inputs)
        resources.append(resource)
    return dataclasses.replace(program, resources=tuple(resources))


def with_healing(program: Program, drifted: Collection[str]) -> Program:
    """Return the program with a step before each object that somebody changed or removed.

    Args:
        program: what is wanted.
        drifted: the names of the resources of these objects.
    """
    resources: list[KubernetesResource | DynamicResource] = []
    for resource in program.resources:
        if isinstance(resource, KubernetesResource) and resource.name in drifted:
            heal = DynamicResource(
                name=f"heal-{resource.name}",
                kind="NothingMore",
                inputs={
                    "object": f"{resource.object['kind']} {resource.object['metadata']['name']}",
                    "what": "applied again",
                    "applies": resource.name,
                },
                derived=None,
                component=HEALING,
                depends_on=resource.depends_on,
            )
            depends_on = (*resource.depends_on, heal.name)
            resources += [heal, dataclasses.replace(resource, depends_on=depends_on)]
        else:
            resources.append(resource)
    components = program.components
    if drifted and HEALING not in {component.name for component in components}:
        components = (*components, Component(name=HEALING, type="NothingMore"))
    return dataclasses.replace(program, components=components, resources=tuple(resources))


def healed_objects(program: Program, drifted: Collection[str]) -> dict[str, Mapping[str, Any]]:
    """Return the wanted objects that the steps of `with_healing` apply, by their resource's name.

    Args:
        program: what is wanted.
        drifted: the names of the resources of these objects.
    """
    return {
        resource.name: resource.object
        for resource in program.resources
        if isinstance(resource, KubernetesResource) and resource.name in drifted
    }


def holds_shared(program: Program, namespace: str) -> bool:
    """Say whether a program holds objects that the Instances of a cluster share.

    Args:
        program: what is wanted.
        namespace: the Instance's namespace.
    """
    for resource in program.resources:
        if isinstance(resource, KubernetesResource):
            metadata = resource.object["metadata"]
            if namespace not in (metadata.get("namespace"), metadata["name"]):
                return True
    return False
