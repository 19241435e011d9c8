"""The wanted objects of one converge, part by part, and which shared parts it leaves out.

Nothing here knows an order: `graph` puts the objects and the steps in it.

Source: spec/converge.md §5 and §6.2, design §5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from jr2 import names
from jr2.config import AllowFrom

from . import closed_list, versions
from .components import (
    admission,
    base,
    images,
    namespace,
    network,
    operator,
    orchestrator,
    secrets,
    storage,
)
from .components import held as held_objects
from .components.secrets import InstanceValues
from .derived.live import LiveObject, LiveObjects, ObjectKey
from .git import GitWants
from .parts import Part, PartContext, PartsWanted, build_parts
from .resources import KubernetesResource
from .rules import KitRefs, Place
from .secrets.certificates import Certificates
from .secrets.decided import Held, SecretWants, hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """What the Instance wants of a cluster.

    Args:
        place: where.
        kit_version: its Kit version.
        refs: its Kit images.
        manage_operator: whether jr2 keeps the operator.
        control_class: the PriorityClass of control pods that the config names, or `None`.
        sandbox_class: the PriorityClass of Sandboxes that the config names, or `None`.
        custodian: the ref of the Custodian's image.
        harness: `harness.json`.
        assembly: the hash of its Assembly, 64 hex digits.
        workflows: the names of its Workflows.
        models: the models that its Agents use and that are checked from the cluster.
        crds: the definitions of jr2's custom resources.
        operator_rules: what the operator may do.
        allow_from: who may connect to the Orchestrator besides its own pods.
        git: tokens and ssh keys for its repositories.
        parts: the parts that its Machines need.
        secrets: what its pods and Effects use and its Agents never see.
    """

    place: Place
    kit_version: str
    refs: KitRefs
    manage_operator: bool
    control_class: str | None
    sandbox_class: str | None
    custodian: str
    harness: str
    assembly: str
    workflows: tuple[str, ...]
    models: tuple[str, ...] = ()
    crds: tuple[Mapping[str, Any], ...] = ()
    operator_rules: tuple[Mapping[str, Any], ...] = ()
    allow_from: tuple[AllowFrom, ...] = ()
    git: GitWants = field(default_factory=GitWants)
    parts: PartsWanted = field(default_factory=PartsWanted)
    secrets: SecretWants = field(default_factory=SecretWants)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorChoice:
    """Whether the shared parts are in the program, and what is said about them."""

    operator: bool
    classes: bool
    announce: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


def operator_choice(wants: Wants, live: LiveObjects) -> OperatorChoice:
    """Decide about the shared parts: never a downgrade, and nothing when somebody else runs them.

    Args:
        wants: what the Instance wants.
        live: what the cluster holds; the label of the operator's Deployment is its version.
    """
    key = ObjectKey(
        closed_list.DEPLOYMENT.api_version,
        closed_list.DEPLOYMENT.kind,
        names.SYSTEM_NAMESPACE,
        names.OPERATOR,
    )
    labels = (live.get(key) or {}).get("metadata", {}).get("labels") or {}
    deployed = labels.get(names.LABEL_VERSION)
    if not wants.manage_operator:
        # The classes are no part of the operator: the Orchestrator's own pod has one, and only
        # `priority_classes` of the config leaves them out (spec/converge.md §5.11 and §6.2).
        return OperatorChoice(
            operator=False,
            classes=True,
            lines=(
                "operator: skipped (operator.manage: false — somebody else runs the operator of "
                "this cluster)",
            ),
        )
    if deployed and versions.is_newer(deployed, wants.kit_version):
        return OperatorChoice(
            operator=False,
            classes=False,
            lines=(
                f"operator: leaving v{deployed} (newer than this kit's v{wants.kit_version} — "
                "never downgraded)",
            ),
        )
    over = f" over v{deployed}" if deployed and deployed != wants.kit_version else ""
    return OperatorChoice(
        operator=True,
        classes=True,
        announce=(f"operator: applying v{wants.kit_version} ({wants.refs.operator}){over}",),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """The wanted objects of one converge, by part, without their dependencies."""

    own_namespace: KubernetesResource
    deploy_keys: tuple[KubernetesResource, ...]
    classes: tuple[KubernetesResource, ...]
    operator_base: tuple[KubernetesResource, ...]
    operator_pods: tuple[KubernetesResource, ...]
    instance_base: tuple[KubernetesResource, ...]
    instance_pods: tuple[KubernetesResource, ...]
    parts: tuple[Part, ...]
    images_json: str
    held_json: str
    held: Held

    def all(self) -> tuple[KubernetesResource, ...]:
        """Return every object in the order of the program."""
        return (
            self.own_namespace,
            *self.deploy_keys,
            *self.classes,
            *self.operator_base,
            *self.operator_pods,
            *self.instance_base,
            *self.instance_pods,
            *(item for part in self.parts for item in (*part.base, *part.pods)),
        )

    def each(self, change: Callable[[KubernetesResource], KubernetesResource]) -> Objects:
        """Return the same with every object changed."""

        def changed(resources: Iterable[KubernetesResource]) -> tuple[KubernetesResource, ...]:
            return tuple(change(item) for item in resources)

        return replace(
            self,
            own_namespace=change(self.own_namespace),
            deploy_keys=changed(self.deploy_keys),
            classes=changed(self.classes),
            operator_base=changed(self.operator_base),
            operator_pods=changed(self.operator_pods),
            instance_base=changed(self.instance_base),
            instance_pods=changed(self.instance_pods),
            parts=tuple(
                replace(part, base=changed(part.base), pods=changed(part.pods))
                for part in self.parts
            ),
        )

    @staticmethod
    def build(
        wants: Wants,
        live: LiveObjects,
        minted: InstanceValues,
        shared: OperatorChoice,
        certificates: Certificates,
    ) -> Objects:
        """Build the wanted objects.

        Args:
            wants: what the Instance wants.
            live: what the cluster holds: values and sizes that are kept.
            minted: new values for what is missing.
            shared: which shared parts are in the program.
            certificates: makes those that are missing.

        Raises:
            StepFailed: a value of the Instance's Secret is of no use.
            Refusal: the claim cannot be what it must be.
        """
        place = wants.place
        instance, ns = place.instance, place.namespace
        control = wants.control_class or names.PRIORITY_CONTROL
        refs = {"custodian": wants.custodian, "operator": wants.refs.operator}
        if wants.refs.harness:
            refs["harness"] = wants.refs.harness
        found = hold(
            wants.secrets,
            instance,
            held(live, closed_list.SECRET, ns, names.HELD_CA),
            held(live, closed_list.SECRET, ns, names.HELD_TLS),
            certificates,
        )
        images_json, held_json = images.images_json(refs), found.manifest.text()
        values = secrets.kept_values(
            held(live, closed_list.SECRET, ns, names.INSTANCE_SECRET), minted
        )
        claim = storage.claim(storage.STATE, instance, ns, live)
        classes = (
            operator.priority_classes(
                control=wants.control_class is None, sandbox=wants.sandbox_class is None
            )
            if shared.classes
            else ()
        )
        operator_base: list[Mapping[str, Any]] = []
        operator_pods: list[Mapping[str, Any]] = []
        if shared.operator:
            operator_base = [
                operator.system_namespace(),
                *(operator.custom_resource(crd) for crd in wants.crds),
                *admission.secrets_policy(),
                *operator.rights(wants.operator_rules),
            ]
            operator_pods = [
                operator.deployment(
                    image=wants.refs.operator,
                    kit_version=wants.kit_version,
                    priority_class=control,
                )
            ]
        tokens, deploy_keys = wants.git.resources(instance, ns)
        return Objects(
            own_namespace=base.resource("namespace", namespace.namespace(instance, ns)),
            deploy_keys=deploy_keys,
            classes=tuple(base.resource("priority-classes", obj, retain=True) for obj in classes),
            operator_base=tuple(
                base.resource("operator", obj, retain=True) for obj in operator_base
            ),
            operator_pods=tuple(
                base.resource("operator", obj, retain=True) for obj in operator_pods
            ),
            instance_base=(
                base.resource("secrets", secrets.instance_secret(instance, ns, values)),
                base.resource("secrets", secrets.orchestrator_secret(instance, ns, values)),
                *(
                    base.resource("secrets", obj)
                    for obj in held_objects.secrets(instance, ns, wants.secrets, found)
                ),
                *tokens,
                *(
                    base.resource("maps", obj)
                    for obj in images.maps(
                        instance,
                        ns,
                        images=images_json,
                        held=held_json,
                        harness=wants.harness,
                    )
                ),
                *(
                    base.resource("maps", obj)
                    for obj in held_objects.trust_map(instance, ns, found)
                ),
                *(
                    base.resource("network", obj)
                    for obj in network.policies(instance, ns, allow_from=wants.allow_from)
                ),
                base.resource("orchestrator", claim),
                *(base.resource("orchestrator", obj) for obj in orchestrator.rights(instance, ns)),
                base.resource("orchestrator", orchestrator.service(instance, ns)),
            ),
            instance_pods=(
                base.resource(
                    "orchestrator",
                    orchestrator.deployment(
                        instance,
                        ns,
                        image=wants.refs.orchestrator,
                        kit_version=wants.kit_version,
                        images=images_json,
                        values_digest=secrets.values_digest(values),
                        priority_class=control,
                    ),
                ),
            ),
            parts=build_parts(
                replace(wants.parts, held=found.manifest),
                PartContext(
                    instance=instance,
                    namespace=ns,
                    kit_version=wants.kit_version,
                    control_class=control,
                    sandbox_class=wants.sandbox_class or names.PRIORITY_SANDBOX,
                    operator_image=wants.refs.operator,
                    harness_image=wants.refs.harness,
                    custodian_image=wants.custodian,
                    signing_key=values.signing_key,
                    harness_json=wants.harness,
                    harness_reads=wants.secrets.read_by_harness(found),
                    effector_reads=wants.secrets.effect_values(),
                ),
                live,
            ),
            images_json=images_json,
            held_json=held_json,
            held=found,
        )


def held(live: LiveObjects, kind: closed_list.Kind, ns: str | None, name: str) -> LiveObject | None:
    """Return one live object."""
    return live.get(ObjectKey(kind.api_version, kind.kind, ns, name))
