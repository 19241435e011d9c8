"""Facts become a plan: the whole program of one converge, and what is said before it runs.

The plan is pure. It decides what is left out, what is deleted and made again, which steps stand
as they should and need nothing, and it names what others changed. With no difference left the
cluster is proved to be as the plan wants it, and the engine is not started.

Dependencies give the order of the seeds: images → preflight → operator → Secrets and Orchestrator
→ parts → publish.

Source: design §5.1–5.4, spec/converge.md §4–6.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from . import closed_list, drift, immutable, made, parts
from .closed_list import Kind
from .components import images
from .components.secrets import InstanceValues
from .derived import (
    Difference,
    LiveObject,
    LiveObjects,
    More,
    ObjectKey,
    differences,
    healing,
    key_of,
    nothing_more,
    settled,
)
from .facts.cluster import ClusterFacts
from .facts.images import ImageFacts
from .git import MissingKey
from .graph import Graph, Resource
from .objects import Objects, Wants, operator_choice
from .resources import Component, DynamicResource, KubernetesResource, Program
from .secrets.certificates import Certificates
from .secrets.decided import check_values
from .secrets.references import Named

PROJECT: Final = "jr2"
HEALING: Final = "nothing-more"
SHARED_HEALING: Final = "nothing-more-shared"
"""Parts of their own, so that no line of another part is said before its time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvergePlan:
    """One converge, decided.

    Args:
        program: everything that it declares.
        live: the live objects that it may compare, heal or delete.
        surplus: those of them that the program no longer holds.
        lines: what is said about parts that are left out.
        warnings: what will fail later, each as a whole line.
        missing_keys: the Secrets with ssh keys that do not exist and that this run was given none
            for.
        drift: what others changed, one line each.
        drifted: the resources whose objects others changed or removed, or that are made anew.
        differences: what the engine would change; empty proves the cluster.
        writes_shared: whether an object that Instances share would be written.
        making: what is written down of the objects that it makes.
        images_digest: the digest of `images.json`.
        held_digest: the digest of `held.json`.
    """

    program: Program
    live: LiveObjects = field(repr=False)
    surplus: tuple[LiveObject, ...] = field(repr=False)
    lines: tuple[str, ...]
    warnings: tuple[str, ...]
    missing_keys: tuple[MissingKey, ...]
    drift: tuple[str, ...]
    drifted: tuple[str, ...]
    differences: tuple[Difference, ...]
    writes_shared: bool
    making: made.Marking
    images_digest: str
    held_digest: str

    @property
    def is_proved(self) -> bool:
        """The cluster is as the program wants it, and its record says all of it."""
        return not self.differences and self.making.is_settled

    def makes(self, kind: Kind, name: str) -> bool:
        """Say whether an object of this name is made by this converge."""
        return any(
            item.operation == "create"
            and item.key is not None
            and (item.key.kind, item.key.name) == (kind.kind, name)
            for item in self.differences
        )

    def standing_lines(self) -> tuple[str, ...]:
        """Return the lines of a converge that changes nothing, in the order of the program."""
        announced: set[str] = set()
        parts = {component.name: component for component in self.program.components}
        lines: list[str] = []
        for resource in self.program.resources:
            if resource.component not in announced:
                announced.add(resource.component)
                lines += parts[resource.component].announce
            if isinstance(resource, DynamicResource):
                lines += resource.unchanged
        return tuple(lines)


def make_plan(
    wants: Wants,
    cluster: ClusterFacts,
    *,
    cluster_uid: str,
    node_images: Sequence[ImageFacts],
    minted: InstanceValues,
    certificates: Certificates,
    marks: made.Marks,
) -> ConvergePlan:
    """Decide one converge.

    Args:
        wants: what the Instance wants.
        cluster: what the cluster holds.
        cluster_uid: the uid of `kube-system`.
        node_images: the imported Kit images; empty when they are pulled.
        minted: new values for Secrets that lack one, made once for each run.
        certificates: makes those that are missing, the same ones for a whole run.
        marks: makes the marks of new objects, the same ones for a whole run.

    Raises:
        StepFailed: a value of the Instance's Secret is of no use, or the secrets of the config lack
            a value, a Secret or a key.
        Refusal: the claim of the Orchestrator cannot be what it must be.
    """
    shared = operator_choice(wants, cluster.live)
    named = Named(secrets=cluster.secrets, config_maps=cluster.config_maps)
    check_values(wants.secrets, named, wants.place.namespace)
    wants = replace(wants, git=wants.git.still(cluster.secrets))
    objects = Objects.build(wants, cluster.live, minted, shared, certificates)
    declared = [key_of(resource.object) for resource in objects.all()]
    governed = closed_list.governed(
        cluster.live, namespace=wants.place.namespace, declared=frozenset(declared)
    )
    recreated = {
        key_of(resource.object): reason
        for resource in objects.all()
        if (reason := _recreate(resource, governed))
    }
    live = {key: obj for key, obj in governed.items() if key not in recreated}
    making = made.marking(
        governed, declared, anew=recreated, namespace=wants.place.namespace, marks=marks
    )
    objects = objects.each(making.marked)
    unwanted = [obj for key, obj in live.items() if key not in set(declared)]
    surplus = tuple(obj for obj in unwanted if making.standing.holds(obj))
    more = _more(objects.all(), live)
    bare = settled(_program(wants, cluster_uid, (), objects.all()), live)
    changed = {item.resource for item in differences(bare, live)} | {
        resource.name for resource in objects.all() if key_of(resource.object) in more
    }
    graph = Graph(wants, cluster, shared, objects, node_images, changed)
    healings = _healings(objects.all(), governed, more, recreated, wants.place.namespace)
    components, resources = graph.declare(healings)
    program = settled(_program(wants, cluster_uid, components, resources), live)
    found = tuple(differences(program, live, surplus))
    program = _told_after(program, healings, {item.resource for item in found})
    said = drift.drift_lines(
        found,
        [item for items in more.values() for item in items],
        governed,
        namespace=wants.place.namespace,
    )
    return ConvergePlan(
        program=program,
        live=live,
        surplus=surplus,
        warnings=wants.git.warnings(cluster.secrets, namespace=wants.place.namespace),
        missing_keys=wants.git.missing(cluster.secrets),
        lines=(
            *shared.lines,
            *parts.removal_lines(wants.parts, surplus, namespace=wants.place.namespace),
            *made.left_lines(obj for obj in unwanted if obj not in surplus),
        ),
        drift=(*said, *_recreation_lines(recreated)),
        drifted=(
            *(
                item.resource
                for item in drift.drifted(found, governed, namespace=wants.place.namespace)
            ),
            *(item.name for item in objects.all() if key_of(item.object) in recreated),
        ),
        differences=found,
        writes_shared=_writes_shared(program, found, wants.place.namespace),
        making=making,
        images_digest=images.text_digest(objects.images_json),
        held_digest=images.text_digest(objects.held_json),
    )


def _recreate(resource: KubernetesResource, live: LiveObjects) -> str | None:
    found = live.get(key_of(resource.object))
    return None if found is None else immutable.reason_to_recreate(resource.object, found)


def _more(
    resources: Sequence[KubernetesResource], live: LiveObjects
) -> dict[ObjectKey, list[More]]:
    found: dict[ObjectKey, list[More]] = {}
    for resource in resources:
        key = key_of(resource.object)
        items = nothing_more(resource.object, live[key]) if key in live else []
        if items:
            found[key] = items
    return found


def _healings(
    resources: Sequence[KubernetesResource],
    live: LiveObjects,
    more: Mapping[ObjectKey, Sequence[More]],
    recreated: Mapping[ObjectKey, str],
    own: str,
) -> dict[str, DynamicResource]:
    """Return the step that comes before an object of which something must go, by its name."""
    found: dict[str, DynamicResource] = {}
    for resource in resources:
        key = key_of(resource.object)
        if key in recreated:
            metadata = live[key]["metadata"]
            inputs = {"what": f"the whole object: {recreated[key]} cannot be changed"}
            inputs |= {"uid": str(metadata["uid"]), "patch": ""}
        elif key in more:
            inputs = {
                "what": "; ".join(str(item) for item in more[key]),
                "patch": json.dumps(healing(live[key], more[key])),
                "generation": str(live[key]["metadata"].get("generation", "")),
            }
        else:
            continue
        kind = closed_list.kind_of(key.kind)
        found[resource.name] = DynamicResource(
            name=f"nothing-more-{resource.name}",
            kind="NothingMore",
            inputs={
                "object": f"{key.kind} {key.name}",
                "path": kind.path(key.namespace, key.name),
                **inputs,
            },
            derived=None,
            component=HEALING if key.namespace == own else SHARED_HEALING,
        )
    return found


def _told_after(
    program: Program, healings: Mapping[str, DynamicResource], differs: Collection[str]
) -> Program:
    """Return the program whose objects that differ and are healed first say so.

    An object of which something goes and that is as it should be otherwise is asked about all the
    same, so a preview names no change of it.
    """
    return replace(
        program,
        resources=tuple(
            replace(resource, told_after=healings[resource.name].name)
            if isinstance(resource, KubernetesResource)
            and resource.name in healings
            and resource.name in differs
            else resource
            for resource in program.resources
        ),
    )


def _recreation_lines(recreated: Mapping[ObjectKey, str]) -> tuple[str, ...]:
    return tuple(
        f"drift: {key.kind} {key.name}: {reason} is not what jr2 needs and cannot be changed — "
        "deleted and made again"
        for key, reason in recreated.items()
    )


def _writes_shared(program: Program, found: Sequence[Difference], own: str) -> bool:
    """Say whether a difference is one of an object outside the Instance's namespace."""
    shared_steps = {
        resource.name
        for resource in program.resources
        if isinstance(resource, DynamicResource) and resource.component == SHARED_HEALING
    }
    return any(
        item.resource in shared_steps
        or (
            item.key is not None
            and item.key.namespace != own
            and (item.key.kind, item.key.name) != ("Namespace", own)
        )
        for item in found
    )


def _program(
    wants: Wants,
    cluster_uid: str,
    components: Sequence[Component],
    resources: Sequence[Resource],
) -> Program:
    return Program(
        project=PROJECT,
        stack=f"{wants.place.instance}.{cluster_uid[:12]}",
        components=tuple(components),
        resources=tuple(resources),
    )
