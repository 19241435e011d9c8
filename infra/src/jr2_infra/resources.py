"""The Converge as data: what the Pulumi program declares, before Pulumi is imported.

One value, a `Program`, is read three times: `program.py` declares it to the engine, `derived/`
makes the checkpoint of it from live objects, and the proof compares it with the cluster. Thus the
three cannot disagree about a name, a type or a dependency.

Source: design §5.1–5.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

DynamicKind = Literal["KitImage", "ProviderPreflight", "Rollout", "NothingMore", "AssemblyPublish"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A part of the Converge: a Pulumi `ComponentResource` that groups its objects.

    Args:
        name: the resource name, unique in the program, such as `orchestrator`.
        type: the last part of the type token `jr2:infra:<type>`, such as `Orchestrator`.
        announce: lines that are said when the first of its resources is reached, in each run, with
            or without the engine.
    """

    name: str
    type: str
    announce: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesResource:
    """One object that the Converge applies.

    Args:
        name: the Pulumi resource name, unique in the program and the same in each run.
        object: the whole wanted object as the API knows it, with the three `pulumi.com`
            annotations. Data of a Secret stands in `data`, base64, and is sealed on its way.
        component: the name of the `Component` that it belongs to.
        depends_on: names of resources that are applied before it.
        retain: a plain `pulumi destroy` leaves it (operator, CRDs, PriorityClasses).
        told_after: the name of the step that changes the live object first, where the object
            differs besides: until then the API server may refuse an apply, also one for a preview.
    """

    name: str
    object: Mapping[str, Any]
    component: str
    depends_on: tuple[str, ...] = ()
    retain: bool = False
    told_after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicResource:
    """One step that a dynamic provider does.

    Args:
        name: the Pulumi resource name.
        kind: which provider of `jr2_infra.providers` does it.
        inputs: few, readable strings; their change is the difference that a preview shows.
        derived: the inputs as the facts say they stand now; `None` when the step was not done,
            so that the engine creates it.
        component: the name of the `Component` that it belongs to.
        depends_on: names of resources that come before it.
        unchanged: lines that are said when it stands as it should and its provider is not called,
            by the proof and by the engine alike. What a provider does it says itself.
    """

    name: str
    kind: DynamicKind
    inputs: Mapping[str, str]
    derived: Mapping[str, str] | None
    component: str
    depends_on: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Everything that one converge declares, in the order of the seeds.

    Args:
        project: the Pulumi project, `jr2`.
        stack: `<instance>.<first 12 of the uid of kube-system>`.
        components: the parts.
        resources: the objects and the steps; a dependency stands before what depends on it.
    """

    project: str
    stack: str
    components: tuple[Component, ...]
    resources: tuple[KubernetesResource | DynamicResource, ...] = field(default=())
