"""What the engine calls each resource: types, URNs and providers.

The program declares resources and the checkpoint states them; both take their names from here, so
they cannot differ by a letter.

Source: design §5.2 and §5.3, derived-state trial.
"""

from __future__ import annotations

import base64
from typing import Final

from jr2 import names

from ..resources import Component, DynamicResource, KubernetesResource, Program

KUBERNETES_VERSION: Final = "4.34.2"
"""The version of the kubernetes plugin; it is the version of the SDK that we depend on."""

COMPONENT_MODULE: Final = "jr2:infra"
PROVIDERS_MODULE: Final = "jr2_infra.providers"
"""Where the dynamic providers live. The name is for ever: states of plain Pulumi users name it."""

MANAGER: Final = names.FIELD_MANAGER

_STACK_TYPE: Final = "pulumi:pulumi:Stack"
_KUBERNETES_PROVIDER: Final = "pulumi:providers:kubernetes"
_DYNAMIC_PROVIDER: Final = "pulumi:providers:pulumi-python"
_KUBERNETES_ID: Final = "4f1c1c7e-0000-4000-8000-6a7232000001"
_DYNAMIC_ID: Final = "4f1c1c7e-0000-4000-8000-6a7232000002"


def kubernetes_type(api_version: str, kind: str) -> str:
    """Return the type token of an object, such as `kubernetes:apps/v1:Deployment`."""
    return f"kubernetes:{'core/v1' if api_version == 'v1' else api_version}:{kind}"


def dynamic_type(kind: str) -> str:
    """Return the type token of a step, such as `pulumi-python:dynamic/jr2:Rollout`."""
    return f"pulumi-python:dynamic/jr2:{kind}"


def component_type(component: Component) -> str:
    """Return the type token of a part, such as `jr2:infra:Orchestrator`."""
    return f"{COMPONENT_MODULE}:{component.type}"


def provider_constant(kind: str) -> str:
    """Return the value of `__provider` of a step: its class by name, and nothing else.

    Pulumi loads it as it loads what it pickled itself. Written down here it is the same under every
    Python and for every version of the class, so an edit of a provider is no difference.
    """
    return base64.b64encode(f"c{PROVIDERS_MODULE}\n{kind}\n(tR.".encode()).decode()


class Urns:
    """The URNs of one program."""

    def __init__(self, program: Program) -> None:
        self._prefix = f"urn:pulumi:{program.stack}::{program.project}::"
        self._components = {component.name: component for component in program.components}
        self.stack = f"{self._prefix}{_STACK_TYPE}::{program.project}-{program.stack}"
        version = KUBERNETES_VERSION.replace(".", "_")
        self.kubernetes_provider = f"{self._prefix}{_KUBERNETES_PROVIDER}::default_{version}"
        self.dynamic_provider = f"{self._prefix}{_DYNAMIC_PROVIDER}::default"

    def component(self, name: str) -> str:
        """Return the URN of a part."""
        component = self._components[name]
        return f"{self._prefix}{component_type(component)}::{name}"

    def resource(self, resource: KubernetesResource | DynamicResource) -> str:
        """Return the URN of an object or a step; its part is its parent."""
        parent = component_type(self._components[resource.component])
        return f"{self._prefix}{parent}${resource_type(resource)}::{resource.name}"

    def surplus(self, api_version: str, kind: str, name: str) -> str:
        """Return the URN of an object that the program no longer holds."""
        return f"{self._prefix}{kubernetes_type(api_version, kind)}::{name}"

    def entries_of_providers(self) -> dict[str, tuple[str, str, dict[str, str]]]:
        """Return type, id and inputs of each provider by its URN."""
        return {
            self.kubernetes_provider: (
                _KUBERNETES_PROVIDER,
                _KUBERNETES_ID,
                {"version": KUBERNETES_VERSION},
            ),
            self.dynamic_provider: (_DYNAMIC_PROVIDER, _DYNAMIC_ID, {}),
        }

    def provider_reference(self, urn: str) -> str:
        """Return how a resource names its provider."""
        return f"{urn}::{self.entries_of_providers()[urn][1]}"


def resource_type(resource: KubernetesResource | DynamicResource) -> str:
    """Return the type token of an object or a step."""
    if isinstance(resource, DynamicResource):
        return dynamic_type(resource.kind)
    return kubernetes_type(resource.object["apiVersion"], resource.object["kind"])


STACK_TYPE: Final = _STACK_TYPE
