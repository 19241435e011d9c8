"""Objects and steps in the order of the seeds, each with what must come before it.

Images → preflight → operator → Secrets and Orchestrator → parts → publish. A step says from the
facts whether it stands as it should; one that does is not done again.

Source: design §5.2–5.4, spec/converge.md §4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from jr2 import names

from . import closed_list
from .facts.cluster import ClusterFacts
from .facts.images import ImageFacts
from .git.wants import TOKENS
from .objects import Objects, OperatorChoice, Wants, held
from .resources import Component, DynamicResource, KubernetesResource
from .rollout import verify
from .rollout.workload import Workload
from .workloads import (
    operator_workload,
    orchestrator_workload,
    part_workload,
    workload_inputs,
)

PUBLISH: Final = "assembly-publish"
PREFLIGHT: Final = "provider-preflight"
ROLLOUT: Final = "rollout-"

Resource = KubernetesResource | DynamicResource


class Graph:
    """Puts objects and steps in the order of the seeds."""

    def __init__(
        self,
        wants: Wants,
        cluster: ClusterFacts,
        shared: OperatorChoice,
        objects: Objects,
        node_images: Sequence[ImageFacts],
        changed: set[str],
    ) -> None:
        self._wants = wants
        self._cluster = cluster
        self._shared = shared
        self._objects = objects
        self._images = node_images
        self._changed = changed

    def declare(
        self, healings: Mapping[str, DynamicResource]
    ) -> tuple[tuple[Component, ...], tuple[Resource, ...]]:
        """Return the parts and the resources; a dependency stands before what depends on it."""
        objects, found = self._objects, list[Resource]()

        def add(items: Sequence[KubernetesResource], after: tuple[str, ...]) -> tuple[str, ...]:
            for item in items:
                own = after
                if item.name in healings:
                    # Right before its object, so that a workload rolls out once for both.
                    found.append(replace(healings[item.name], depends_on=after or gate))
                    own = (*after, healings[item.name].name)
                found.append(replace(item, depends_on=tuple(dict.fromkeys(own))))
            return tuple(item.name for item in items)

        imports = [self._import(item) for item in self._images]
        found += imports
        gate = tuple(item.name for item in imports)
        if self._wants.models:
            found.append(self._preflight(gate))
            gate = (PREFLIGHT,)
        own = add([objects.own_namespace], ())
        # Soon after the gate: of a key that a person was told of, little can be lost.
        keys = add(objects.deploy_keys, (*gate, *own))
        classes = add(objects.classes, gate)
        ready = (*gate, *classes)
        if self._shared.operator:
            system = add(objects.operator_base[:1], gate)
            rest = add(objects.operator_base[1:], (*gate, *system))
            pods = add(objects.operator_pods, (*ready, *system, *rest))
            rollout = self._rollout(operator_workload(self._wants, self._images), pods)
            found.append(rollout)
            ready = (rollout.name,)
        rest = add(objects.instance_base, (*ready, *own, *keys))
        pods = add(objects.instance_pods, (*ready, *own, *rest))
        rollout = self._rollout(orchestrator_workload(self._wants, self._images), pods)
        found.append(rollout)
        ready = (rollout.name,)
        for part in objects.parts:
            # One after the other, so that the lines of two parts never mix.
            before = add(part.base, ready)
            pods = add(part.pods, (*ready, *before))
            part_rollout = self._rollout(part_workload(self._wants, part, self._images), pods)
            found.append(part_rollout)
            ready = (part_rollout.name,)
        found.append(self._publish((rollout.name, *ready, *rest)))
        return self._components(found), tuple(found)

    def _components(self, resources: Sequence[Resource]) -> tuple[Component, ...]:
        announce = {
            TOKENS: self._wants.git.lines,
            "operator": self._shared.announce,
            "orchestrator": (f"orchestrator: applying (image {self._wants.refs.orchestrator})",),
            **{part.component: (part.announce,) for part in self._objects.parts},
        }
        return tuple(
            Component(name=name, type=_type_of(name), announce=announce.get(name, ()))
            for name in dict.fromkeys(resource.component for resource in resources)
        )

    def _import(self, image: ImageFacts) -> DynamicResource:
        digest = image.held or image.archived or ""
        return DynamicResource(
            name=f"kit-image-{_image_name(image.ref)}",
            kind="KitImage",
            inputs={"ref": image.ref, "digest": digest},
            derived=None if image.held is None else {"ref": image.ref, "digest": image.held},
            component="images",
        )

    def _preflight(self, after: tuple[str, ...]) -> DynamicResource:
        """The check of the models is made in each run: nothing in the cluster can stand for it."""
        return DynamicResource(
            name=PREFLIGHT,
            kind="ProviderPreflight",
            inputs={"models": ", ".join(self._wants.models)},
            derived=None,
            component="preflight",
            depends_on=after,
        )

    def _rollout(self, workload: Workload, after: tuple[str, ...]) -> DynamicResource:
        component = workload.layer.replace(" ", "-")
        inputs = workload_inputs(workload)
        pods = (
            self._cluster.system_pods
            if workload.namespace == names.SYSTEM_NAMESPACE
            else self._cluster.pods
        )
        live = held(
            self._cluster.live,
            closed_list.kind_of(workload.kind),
            workload.namespace,
            workload.name,
        )
        touched = set(after) & self._changed
        count = None if touched else verify.stands(workload, live, pods)
        return DynamicResource(
            name=f"{ROLLOUT}{component}",
            kind="Rollout",
            inputs=inputs,
            derived=None if count is None else inputs,
            component=component,
            depends_on=after,
            unchanged=(
                verify.waiting_line(workload),
                verify.conclude(workload, verify.Verified(count=count or 0)),
            ),
        )

    def _publish(self, after: tuple[str, ...]) -> DynamicResource:
        """Publish again after each rollout: the new pod says itself what it holds."""
        health = self._cluster.health
        rolls = any(item.name in self._changed for item in self._objects.instance_pods)
        current = None if health is None or rolls else health.hash
        return DynamicResource(
            name=PUBLISH,
            kind="AssemblyPublish",
            inputs={"assembly": self._wants.assembly},
            derived=None if current is None else {"assembly": current},
            component="assembly",
            depends_on=after,
            unchanged=(already_current_line(self._wants.assembly, self._wants.workflows),),
        )


def already_current_line(assembly: str, workflows: Sequence[str]) -> str:
    """Return the line of an Assembly that the Orchestrator already has as its current one."""
    return (
        f"assembly: {assembly[: names.SHORT_HASH]} is current already — workflows: "
        f"{', '.join(workflows) or '(none)'}"
    )


def _image_name(ref: str) -> str:
    return ref.rpartition("/")[2].partition(":")[0]


def _type_of(component: str) -> str:
    return "".join(word.capitalize() for word in component.split("-"))
