"""The Program declared to Pulumi: parts as components, objects and steps as their children.

This module imports Pulumi, so it is imported where the engine runs and nowhere else. It decides
nothing: what stands in a `Program` is declared as it stands.

Source: design §5.1 and §5.3, libraries.md §2.1.
"""

from __future__ import annotations

from typing import Any

import pulumi

from .derived import urns
from .resources import DynamicResource, KubernetesResource, Program

_SECRET_FIELDS = ("data", "stringData")


def declare(program: Program) -> None:
    """Declare every resource of a program; Pulumi calls this inside its event loop.

    An object is declared by its type token and not through its class of `pulumi_kubernetes`: given
    plain dicts the class sends the same inputs, and its import alone takes half a second.
    """
    components = {
        component.name: pulumi.ComponentResource(
            urns.component_type(component), component.name, None, pulumi.ResourceOptions()
        )
        for component in program.components
    }
    declared: dict[str, Any] = {}
    for resource in program.resources:
        options = pulumi.ResourceOptions(
            parent=components[resource.component],
            depends_on=[declared[name] for name in resource.depends_on],
        )
        if isinstance(resource, DynamicResource):
            declared[resource.name] = _declare_step(resource, options)
        else:
            declared[resource.name] = _declare_object(resource, options)
    for component in components.values():
        component.register_outputs({})


def _declare_object(resource: KubernetesResource, options: Any) -> Any:
    inputs = dict(resource.object)
    options.version = urns.KUBERNETES_VERSION
    options.retain_on_delete = resource.retain
    if inputs["kind"] == "Secret":
        for name in _SECRET_FIELDS:
            if name in inputs:
                inputs[name] = pulumi.Output.secret(inputs[name])
        options.additional_secret_outputs = list(_SECRET_FIELDS)
    return pulumi.CustomResource(urns.resource_type(resource), resource.name, inputs, options)


def _declare_step(step: DynamicResource, options: Any) -> Any:
    inputs = {"__provider": urns.provider_constant(step.kind), **step.inputs}
    return pulumi.CustomResource(urns.resource_type(step), step.name, inputs, options)
