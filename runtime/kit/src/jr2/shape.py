"""The shape of a Machine: a digest of what a stored snapshot needs to find again.

It covers states, nesting, regions and history, what is invoked where, the shapes of the Machines
among that, and which event leads from where to where. It leaves out the bodies of guards, actions
and mappers, delays, texts, what `customize()` binds, and the Workflow's name, so an edit of those is
no drift. Nor is another order of states or transitions.

A state that runs a Machine for each item of its context is marked opaque: how many there are is
known only while it runs.

Source: spec/runtime.md §1.8, spec/authoring.md §2.14 (last paragraph).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from .chart import ROOT, Chart, Node, Transition

_VIA: Final = {"child": "invoke", "pool": "spawn"}


def shape_digest(chart: Chart) -> str:
    """Return the first 12 hex digits of the SHA-256 over the canonical JSON of the shape."""
    text = json.dumps(
        {
            "machine": chart.id,
            "state": _shape(chart, chart.nodes[ROOT]),
            "machines": _machines(chart),
        },
        sort_keys=True,
        separators=(",", ":"),
    )
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def is_opaque(node: Node) -> bool:
    """Whether how many children a state has is known only while it runs."""
    return any(invocation.kind == "pool" for invocation in node.invocations)


def _shape(chart: Chart, node: Node) -> dict[str, Any]:
    invokes = [{"id": one.id, "src": one.slot, "kind": one.kind} for one in node.invocations]
    if node.gate is not None:
        invokes.append({"id": node.id, "src": "gate", "kind": "gate"})
    told: dict[str, Any] = {
        "id": node.id,
        "key": node.key,
        "type": node.kind,
        "initial": sorted(chart.nodes[one].id for one in node.initial),
        "invokes": sorted(invokes, key=lambda one: (one["src"], one["id"])),
        "on": sorted(_line(chart, transition) for transition in node.transitions),
        "states": sorted(
            (_shape(chart, chart.nodes[child]) for child in node.children),
            key=lambda state: str(state["key"]),
        ),
    }
    if node.deep:
        told["deep"] = True
    if is_opaque(node):
        told["opaque"] = True
    return told


def _machines(chart: Chart) -> list[dict[str, str]]:
    """Return the child Machines with the way in which they are run, each once."""
    found = {
        (invocation.slot, _VIA[invocation.kind])
        for node in chart.nodes
        for invocation in node.invocations
        if invocation.kind in _VIA
    }
    return [
        {"src": slot, "via": via, "machine": shape_digest(chart.children[slot].chart)}
        for slot, via in sorted(found)
    ]


def _line(chart: Chart, transition: Transition) -> str:
    targets = ",".join(chart.nodes[target].id for target in transition.targets)
    return f"{chart.nodes[transition.source].id}|{transition.event}|{targets}"
