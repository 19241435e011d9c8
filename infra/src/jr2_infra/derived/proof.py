"""The proof that the cluster is as the program wants it, before the engine is asked.

No difference exactly when the engine would say `same` for every resource: both compare the wanted
object with the same derived one.

Source: design §5.2 (Prove first).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..resources import DynamicResource, KubernetesResource, Program
from . import fields as managed
from .compare import FieldChange, at, changed_paths, spelled
from .derive import derive
from .fields import Path
from .live import LiveObject, LiveObjects, ObjectKey, key_of

Operation = Literal["create", "update", "delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One resource that the engine would change.

    Args:
        resource: its Pulumi name; for an object that the program no longer holds the name that the
            checkpoint gives it.
        operation: what the engine would do.
        key: the object; `None` for a step.
        fields: which fields differ; empty unless `operation` is `update`.
    """

    resource: str
    operation: Operation
    key: ObjectKey | None = None
    fields: tuple[FieldChange, ...] = ()


def differences(
    program: Program, live: LiveObjects, surplus: Sequence[LiveObject] = ()
) -> list[Difference]:
    """Return what the engine would change, in the order of the program; `[]` proves that all is well.

    Args:
        program: what is wanted.
        live: what the cluster holds.
        surplus: live objects of the closed list that the program no longer holds.
    """
    found: list[Difference] = []
    for resource in program.resources:
        if isinstance(resource, DynamicResource):
            difference = _of_step(resource)
        else:
            key = key_of(resource.object)
            difference = _of_object(resource, key, live.get(key))
        if difference is not None:
            found.append(difference)
    for obj in deletable(surplus):
        key = key_of(obj)
        found.append(Difference(resource=surplus_name(key), operation="delete", key=key))
    return found


def deletable(surplus: Sequence[LiveObject]) -> list[LiveObject]:
    """Return the objects that a converge may delete: never a Namespace, never a claim."""
    kept = {"Namespace", "PersistentVolumeClaim"}
    return [obj for obj in surplus if obj["kind"] not in kept and managed.is_applied(obj)]


def surplus_name(key: ObjectKey) -> str:
    """Return the resource name of an object that the program no longer holds.

    No resource of a program contains a colon, so the name is nobody else's.
    """
    return f"surplus:{key.kind.lower()}:{key.name}"


def settled(program: Program, live: LiveObjects) -> Program:
    """Return the program with the replicas that an autoscaler decided.

    Checkpoint, proof and engine all take the program through this, so that no converge sets back
    what an autoscaler set; what a person scaled by hand is set back.
    """
    resources: list[KubernetesResource | DynamicResource] = []
    for resource in program.resources:
        if isinstance(resource, KubernetesResource):
            found = live.get(key_of(resource.object))
            if found is not None and _asks_replicas(resource.object) and managed.autoscaled(found):
                spec = dict(resource.object["spec"])
                del spec["replicas"]
                resource = replace(resource, object={**resource.object, "spec": spec})
        resources.append(resource)
    return replace(program, resources=tuple(resources))


def _asks_replicas(obj: Mapping[str, Any]) -> bool:
    spec = obj.get("spec")
    return isinstance(spec, Mapping) and "replicas" in spec


def _of_object(
    resource: KubernetesResource, key: ObjectKey, live: LiveObject | None
) -> Difference | None:
    if live is None or not managed.is_applied(live):
        return Difference(resource=resource.name, operation="create", key=key)
    found = derive(resource.object, live)
    changes: list[FieldChange] = []
    for path, kind in changed_paths(found, resource.object):
        if kind == "add":
            changes.extend(_taken(path, resource.object, live))
        else:
            obj = found if kind == "delete" else resource.object
            changes.append(FieldChange(path=spelled(path, obj), kind=kind))
    if not changes:
        return None
    return Difference(resource=resource.name, operation="update", key=key, fields=tuple(changes))


def _taken(path: Path, wanted: Mapping[str, Any], live: LiveObject) -> Iterator[FieldChange]:
    """Name what is no longer ours at a path, down to single fields, and whose it is now."""
    there = managed.live_path(live, wanted, path)
    value = at(wanted, path)
    parts = isinstance(value, Mapping) and isinstance(at(live, there), Mapping)
    if parts and value and not managed.is_atomic(live, there):
        for name in value:
            yield from _taken((*path, name), wanted, live)
        return
    by = managed.owners(live, there)
    yield FieldChange(path=spelled(path, wanted), kind="update" if by else "add", by=by)


def _of_step(step: DynamicResource) -> Difference | None:
    if step.derived is None:
        return Difference(resource=step.name, operation="create")
    changes = tuple(
        FieldChange(path=spelled(path, step.inputs), kind=kind)
        for path, kind in changed_paths(step.derived, step.inputs)
    )
    if not changes:
        return None
    return Difference(resource=step.name, operation="update", fields=changes)
