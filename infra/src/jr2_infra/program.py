"""The Program declared to Pulumi: parts as components, objects and steps as their children.

This module imports Pulumi, so it is imported where the engine runs and nowhere else. It decides
nothing: what stands in a `Program` is declared as it stands.

Source: design §5.1 and §5.3, libraries.md §2.1.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from .derived import urns
from .resources import DynamicResource, KubernetesResource, Program

_SECRET_FIELDS = ("data", "stringData")


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesProvider:
    """The plugin of Kubernetes as a resource, where no environment of ours configures it.

    The kubeconfig itself is no input: the plugin reads the user's as kubectl does, so no
    credential stands in a state. The cluster is what the resource is known by, and a context of
    another name for the same cluster replaces nothing.

    Args:
        context: the context of the kubeconfig.
        cluster: the uid of `kube-system`.
    """

    context: str
    cluster: str

    def inputs(self) -> dict[str, str]:
        """Return its inputs; a provider takes each as JSON text."""
        return {
            "context": self.context,
            "clusterIdentifier": self.cluster,
            "enableServerSideApply": "true",
            "enableConfigMapMutable": "true",
            "enableSecretMutable": "true",
            "upsertExistingObjects": "true",
            "suppressDeprecationWarnings": "true",
        }


def declare(program: Program, *, kubernetes: KubernetesProvider | None = None) -> None:
    """Declare every resource of a program; Pulumi calls this inside its event loop.

    Args:
        program: what is wanted.
        kubernetes: the plugin of Kubernetes; `None` where its environment configures it.

    An object is declared by its type token and not through its class of `pulumi_kubernetes`: given
    plain dicts the class sends the same inputs, and its import alone takes half a second.
    """
    components = {
        component.name: pulumi.ComponentResource(
            urns.component_type(component), component.name, None, pulumi.ResourceOptions()
        )
        for component in program.components
    }
    provider = None
    if kubernetes is not None:
        provider = pulumi.ProviderResource(
            "kubernetes",
            "cluster",
            kubernetes.inputs(),
            pulumi.ResourceOptions(version=urns.KUBERNETES_VERSION),
        )
    declared: dict[str, Any] = {}
    for resource in program.resources:
        options = pulumi.ResourceOptions(
            parent=components[resource.component],
            depends_on=[declared[name] for name in resource.depends_on],
        )
        if isinstance(resource, DynamicResource):
            declared[resource.name] = _declare_step(resource, options)
        else:
            options.provider = provider
            heal = None if resource.told_after is None else declared[resource.told_after]
            declared[resource.name] = _declare_object(resource, options, heal)
    for component in components.values():
        component.register_outputs({})


def _declare_object(resource: KubernetesResource, options: Any, heal: Any | None) -> Any:
    inputs = dict(resource.object)
    if heal is not None and pulumi.runtime.is_dry_run():
        inputs["metadata"] = _known_after(heal, inputs["metadata"])
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


def _known_after(heal: Any, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of an object with one label that is known once its healing is done.

    In a preview the plugin asks the API server what an apply would give. As long as the object is
    not healed, the answer may be a refusal: two ports of one name, two sources of a volume, a field
    that cannot change. Of an object with a value that is not known yet it asks nothing.
    """
    labels = dict(metadata.get("labels") or {})
    if labels:
        name = min(labels)
        labels[name] = heal.id.apply(functools.partial(_given, labels[name]))
    return {**metadata, "labels": labels} if labels else dict(metadata)


def _given(value: str, _: str) -> str:
    return value
