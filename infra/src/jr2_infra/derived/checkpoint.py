"""The engine's checkpoint, derived from the live objects: nothing is stored between two runs.

An entry stands for each object of the program that exists, that jr2 applied and that no other
object owns; for each object of the closed list that exists and is no longer wanted, so that the
engine deletes it; and for each step that the facts say was done. `inputs` is what `derive` says,
`outputs` the same fields as the API spells them. Data of Secrets is sealed.

Source: design §5.2, derived-state trial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..resources import DynamicResource, KubernetesResource, Program
from . import fields as managed
from .derive import applied, derive
from .live import LiveObject, LiveObjects, key_of
from .proof import deletable, surplus_name
from .sealing import Sealer
from .urns import (
    MANAGER,
    STACK_TYPE,
    Urns,
    component_type,
    kubernetes_type,
    provider_constant,
    resource_type,
)

_SEALED = ("data", "stringData")


def checkpoint(
    program: Program,
    live: LiveObjects,
    sealer: Sealer,
    surplus: Sequence[LiveObject] = (),
) -> dict[str, Any]:
    """Return the checkpoint as the engine's file backend keeps it.

    Args:
        program: what is wanted, after `settled`.
        live: what the cluster holds.
        sealer: what seals the data of Secrets.
        surplus: live objects of the closed list that the program no longer holds.
    """
    urns = Urns(program)
    entries: list[dict[str, Any]] = []
    used: dict[str, None] = {}
    for resource in program.resources:
        if isinstance(resource, DynamicResource):
            entry, provider = _step(resource, urns), urns.dynamic_provider
        else:
            found = live.get(key_of(resource.object))
            entry, provider = _object(resource, found, urns, sealer), urns.kubernetes_provider
        if entry is not None:
            used[provider] = None
            entries.append(entry)
    for obj in deletable(surplus):
        used[urns.kubernetes_provider] = None
        entries.append(_surplus(obj, urns, sealer))
    first: list[dict[str, Any]] = [{"urn": urns.stack, "custom": False, "type": STACK_TYPE}]
    for urn, (kind, identity, inputs) in urns.entries_of_providers().items():
        if urn in used:
            first.append(_provider(urn, kind, identity, inputs))
    first.extend(
        {
            "urn": urns.component(component.name),
            "custom": False,
            "type": component_type(component),
            "parent": urns.stack,
        }
        for component in program.components
    )
    return {
        "version": 3,
        "checkpoint": {
            "stack": f"organization/{program.project}/{program.stack}",
            "latest": {
                "manifest": {"time": "0001-01-01T00:00:00Z", "magic": "", "version": ""},
                "secrets_providers": sealer.secrets_provider(),
                "resources": [*first, *entries],
            },
        },
    }


def _provider(urn: str, kind: str, identity: str, inputs: Mapping[str, str]) -> dict[str, Any]:
    # The identity of a provider must not hang on a kubeconfig: with one of another cluster in it
    # the engine would plan to replace everything.
    return {
        "urn": urn,
        "custom": True,
        "id": identity,
        "type": kind,
        "inputs": dict(inputs),
        "outputs": dict(inputs),
    }


def _step(step: DynamicResource, urns: Urns) -> dict[str, Any] | None:
    if step.derived is None:
        return None
    inputs = {"__provider": provider_constant(step.kind), **step.derived}
    return {
        "urn": urns.resource(step),
        "custom": True,
        "id": step.name,
        "type": resource_type(step),
        "inputs": inputs,
        "outputs": dict(inputs),
        "parent": urns.component(step.component),
        "provider": urns.provider_reference(urns.dynamic_provider),
    }


def _object(
    resource: KubernetesResource, live: LiveObject | None, urns: Urns, sealer: Sealer
) -> dict[str, Any] | None:
    if live is None or not managed.is_applied(live):
        return None
    return _entry(
        urn=urns.resource(resource),
        token=resource_type(resource),
        parent=urns.component(resource.component),
        wanted=resource.object,
        live=live,
        urns=urns,
        sealer=sealer,
    )


def _surplus(live: LiveObject, urns: Urns, sealer: Sealer) -> dict[str, Any]:
    name = surplus_name(key_of(live))
    return _entry(
        urn=urns.surplus(live["apiVersion"], live["kind"], name),
        token=kubernetes_type(live["apiVersion"], live["kind"]),
        parent=urns.stack,
        wanted={},
        live=live,
        urns=urns,
        sealer=sealer,
    )


def _entry(
    *,
    urn: str,
    token: str,
    parent: str,
    wanted: Mapping[str, Any],
    live: LiveObject,
    urns: Urns,
    sealer: Sealer,
) -> dict[str, Any]:
    metadata = live["metadata"]
    inputs = _sealed(derive(wanted, live), sealer)
    outputs = {
        **_sealed(applied(wanted, live), sealer),
        "__inputs": inputs,
        "__initialApiVersion": live["apiVersion"],
        "__fieldManager": MANAGER,
    }
    namespace = metadata.get("namespace")
    return {
        "urn": urn,
        "custom": True,
        "id": f"{namespace}/{metadata['name']}" if namespace else metadata["name"],
        "type": token,
        "inputs": inputs,
        "outputs": outputs,
        "parent": parent,
        "provider": urns.provider_reference(urns.kubernetes_provider),
    }


def _sealed(obj: dict[str, Any], sealer: Sealer) -> dict[str, Any]:
    if obj["kind"] != "Secret":
        return obj
    return {key: sealer.seal(value) if key in _SEALED else value for key, value in obj.items()}
