"""The parts that come and go: which of them the Machines of an Instance need, and their objects.

A Repo cache stands where a Machine has a Sandbox, an Instance Harness where an Agent is Menu-only,
an Instance Effector where an Effect runs there. A part that nobody needs any more is removed; its
claim and its Repos stay, since a converge deletes no data.

Source: seed 000 (What jr2 up does), spec/converge.md §5.6–5.9.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from jr2 import custodian, names, signed
from jr2.config import Config, EnvFrom, EnvVar, SecretKeyRef
from jr2.held import HeldManifest
from jr2.walk import WalkedParts

from .components import (
    base,
    images,
    instance_effector,
    instance_harness,
    repo_cache,
    storage,
)
from .components.repo_cache import Placement
from .derived.live import LiveObject, LiveObjects
from .resources import KubernetesResource
from .rollout.workload import WorkloadKind

PartName = Literal["repo cache", "instance harness", "instance effector"]

REASONS: Final[Mapping[PartName, str]] = {
    "repo cache": "no Machine has a Sandbox",
    "instance harness": "no Agent is Menu-only",
    "instance effector": "no Effect runs there",
}
"""Why a part is not there, as the rest of a sentence."""
WORKLOADS: Final[Mapping[PartName, tuple[WorkloadKind, str]]] = {
    "repo cache": ("DaemonSet", names.REPO_CACHE),
    "instance harness": ("StatefulSet", names.INSTANCE_HARNESS),
    "instance effector": ("Deployment", names.INSTANCE_EFFECTOR),
}
"""Kind and name of what runs the pods of each part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsWanted:
    """Which parts the Instance needs, and what its config says of them.

    Args:
        repo_cache: a Machine has a Sandbox.
        instance_harness: an Agent is Menu-only.
        instance_effector: an Effect runs in the Instance Effector.
        placement: where Sandboxes may run.
        env: `harness.env`.
        env_from: `harness.env_from`.
        has_ca_bundle: `harness.ca_bundle` names a file.
        held: what the Harness pods hold.
        literal: the Effect secrets of the Instance Effector whose values the config gives.
        referenced: those that a Secret of the user's holds, by name.
    """

    repo_cache: bool = False
    instance_harness: bool = False
    instance_effector: bool = False
    placement: Placement = field(default_factory=Placement)
    env: Sequence[EnvVar] = field(default=(), repr=False)
    env_from: Sequence[EnvFrom] = ()
    has_ca_bundle: bool = False
    held: HeldManifest = field(default_factory=HeldManifest)
    literal: tuple[str, ...] = ()
    referenced: Mapping[str, SecretKeyRef] = field(default_factory=dict)

    @property
    def harness_image(self) -> bool:
        """A pod of the Instance needs the Harness image, as its own or as a volume."""
        return self.repo_cache or self.instance_harness or self.instance_effector

    def needed(self, part: PartName) -> bool:
        """Say whether the Instance needs a part."""
        return {
            "repo cache": self.repo_cache,
            "instance harness": self.instance_harness,
            "instance effector": self.instance_effector,
        }[part]

    @staticmethod
    def of(config: Config, machines: Iterable[WalkedParts]) -> PartsWanted:
        """Return what the Machines of an Instance need.

        Args:
            config: the config of the Instance.
            machines: what each of its Machines carries.
        """
        found = list(machines)
        named = {
            effect.secret
            for machine in found
            for effect in machine.effects
            if effect.place == "instance-effector" and effect.secret is not None
        }
        used = [secret for secret in config.secrets if secret.name in named]
        return PartsWanted(
            repo_cache=any(machine.sandboxes for machine in found),
            instance_harness=any(machine.menu_only for machine in found),
            instance_effector=any(machine.instance_effector for machine in found),
            placement=Placement.of(config.sandbox),
            env=tuple(config.harness.env),
            env_from=tuple(config.harness.env_from),
            has_ca_bundle=config.harness.ca_bundle is not None,
            literal=tuple(sorted(one.name for one in used if one.value_from is None)),
            referenced={one.name: one.value_from for one in used if one.value_from is not None},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartContext:
    """What the objects of the parts need to know of the Instance.

    Args:
        instance: its name.
        namespace: its namespace.
        kit_version: its Kit version.
        control_class: the PriorityClass of control pods.
        sandbox_class: the PriorityClass of Sandboxes.
        operator_image: the Kit image of the operator.
        harness_image: the Kit image of the Harness; `None` where no part needs it.
        custodian_image: the Pinned image of the Custodian.
        signing_key: the Instance's.
        harness_json: the text of `harness.json`.
        harness_reads: what a Harness and its Custodian read of secrets at their start, by name.
        effector_reads: the values that the Instance Effector reads at its start, by name.
    """

    instance: str
    namespace: str
    kit_version: str
    control_class: str
    sandbox_class: str
    operator_image: str
    harness_image: str | None
    custodian_image: str
    signing_key: str = field(repr=False)
    harness_json: str
    harness_reads: Mapping[str, str] = field(default_factory=dict, repr=False)
    effector_reads: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The objects of one part that is needed.

    Args:
        name: the word of its lines.
        image: what its pods run.
        container: whose image is compared with that one.
        base: what stands before its pods.
        pods: what makes its pods.
    """

    name: PartName
    image: str
    container: str
    base: tuple[KubernetesResource, ...]
    pods: tuple[KubernetesResource, ...]

    @property
    def component(self) -> str:
        """The name of its component."""
        return component_of(self.name)

    @property
    def announce(self) -> str:
        """The line before its first object."""
        return f"{self.name}: applying (image {self.image})"


def component_of(part: PartName) -> str:
    """Return the name of the component of a part."""
    return part.replace(" ", "-")


def build_parts(wanted: PartsWanted, about: PartContext, live: LiveObjects) -> tuple[Part, ...]:
    """Return the parts that are needed, in the order in which they are applied.

    Args:
        wanted: what the Machines need.
        about: the Instance.
        live: what the cluster holds; a claim that was made larger keeps its size.

    Raises:
        Refusal: the claim of the conversations cannot be what it must be.
    """
    found: list[Part] = []
    if wanted.repo_cache:
        found.append(_repo_cache(wanted, about))
    if wanted.instance_harness:
        found.append(_instance_harness(wanted, about, live))
    if wanted.instance_effector:
        found.append(_instance_effector(wanted, about))
    return tuple(found)


def removal_lines(
    wanted: PartsWanted, surplus: Sequence[LiveObject], *, namespace: str
) -> tuple[str, ...]:
    """Return one line for each part that is removed.

    Args:
        wanted: what the Machines need.
        surplus: the live objects that the program no longer holds.
        namespace: the Instance's.
    """
    going = {
        (obj["kind"], obj["metadata"]["name"])
        for obj in surplus
        if obj["metadata"].get("namespace") == namespace
    }
    return tuple(
        f"{part}: removing it ({REASONS[part]})"
        for part, workload in WORKLOADS.items()
        if not wanted.needed(part) and workload in going
    )


def _repo_cache(wanted: PartsWanted, about: PartContext) -> Part:
    instance, ns = about.instance, about.namespace
    return _part(
        "repo cache",
        about.operator_image,
        names.CONTAINER_REPO_CACHE,
        repo_cache.rights(instance, ns),
        repo_cache.daemon_set(
            instance,
            ns,
            image=about.operator_image,
            kit_version=about.kit_version,
            placement=wanted.placement,
            priority_class=about.control_class,
        ),
    )


def _instance_harness(wanted: PartsWanted, about: PartContext, live: LiveObjects) -> Part:
    instance, ns = about.instance, about.namespace
    claim = storage.claim(storage.CONVERSATIONS, instance, ns, live)
    key = signed.read_key(about.signing_key)
    composed = custodian.compose(
        image=about.custodian_image,
        token=(names.INSTANCE_SECRET, names.KEY_INSTANCE_HARNESS_TOKEN),
        held=wanted.held,
        has_ca_bundle=wanted.has_ca_bundle,
    )
    read = {
        **images.custodian_files(ns),
        names.HELD_KEY: wanted.held.text(),
        names.HARNESS_KEY: about.harness_json,
        **about.harness_reads,
    }
    image = _harness_image(about)
    return _part(
        "instance harness",
        image,
        names.CONTAINER_HARNESS,
        (claim, *instance_harness.services(instance, ns)),
        instance_harness.stateful_set(
            instance,
            ns,
            image=image,
            kit_version=about.kit_version,
            priority_class=about.sandbox_class,
            bearer_digest=signed.bearer_digest(signed.harness_bearer(key, names.INSTANCE_HARNESS)),
            read_digest=read_digest(key, read),
            env=wanted.env,
            env_from=wanted.env_from,
            custodian=composed,
        ),
    )


def _instance_effector(wanted: PartsWanted, about: PartContext) -> Part:
    instance, ns = about.instance, about.namespace
    shared = instance_effector.key_of(about.signing_key)
    image = _harness_image(about)
    return _part(
        "instance effector",
        image,
        names.CONTAINER_EFFECTOR,
        (
            instance_effector.secret(instance, ns, key=shared),
            instance_effector.policy(instance, ns),
            instance_effector.service(instance, ns),
        ),
        instance_effector.deployment(
            instance,
            ns,
            image=image,
            kit_version=about.kit_version,
            priority_class=about.control_class,
            values_digest=read_digest(
                signed.read_key(about.signing_key),
                {
                    names.FILE_SIGNING_KEY: shared,
                    **{name: about.effector_reads.get(name, "") for name in wanted.literal},
                },
            ),
            literal=wanted.literal,
            referenced=wanted.referenced,
        ),
    )


def read_digest(key: bytes, texts: Mapping[str, str]) -> str:
    """Return the digest of what containers read at their start, for their pod template.

    It is signed with the Instance's key, so that nobody who reads a pod can try values against it.

    Args:
        key: the Instance's signing key.
        texts: what is read, by name.
    """
    said = "".join(f"{name}\0{len(text)}\0{text}\0" for name, text in sorted(texts.items()))
    return hmac.new(key, said.encode(), hashlib.sha256).hexdigest()


def _harness_image(about: PartContext) -> str:
    assert about.harness_image is not None, "a part that needs the Harness image has its ref"
    return about.harness_image


def _part(
    name: PartName,
    image: str,
    container: str,
    before: Sequence[Mapping[str, Any]],
    pods: Mapping[str, Any],
) -> Part:
    component = component_of(name)
    return Part(
        name=name,
        image=image,
        container=container,
        base=tuple(base.resource(component, obj) for obj in before),
        pods=(base.resource(component, pods),),
    )
