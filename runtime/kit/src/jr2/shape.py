"""The shape of a Machine: a digest of what a stored snapshot needs to find again.

It covers states, nesting, what is invoked where, and which event leads from where to where. It
leaves out the bodies of guards, assigns and mappers, delays, texts, and the Workflow's name, so an
edit of those is no drift. Nor is another order of states or transitions.

Source: spec/runtime.md §1.8, spec/authoring.md §2.14 (last paragraph).
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from .chart import Chart, Node, Transition


def shape_digest(chart: Chart) -> str:
    """Return the first 12 hex digits of the SHA-256 over the canonical JSON of the shape."""
    text = json.dumps(
        {"machine": chart.id, "state": _shape(chart, chart.nodes[0])},
        sort_keys=True,
        separators=(",", ":"),
    )
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _shape(chart: Chart, node: Node) -> dict[str, Any]:
    invokes = [{"id": one.id, "src": one.slot} for one in node.invocations]
    if node.gate is not None:
        invokes.append({"id": node.id, "src": "gate"})
    return {
        "id": node.id,
        "key": node.key,
        "type": node.kind,
        "initial": [chart.nodes[one].id for one in node.initial],
        "invokes": sorted(invokes, key=lambda one: (one["src"], one["id"])),
        "on": sorted(_line(chart, transition) for transition in node.transitions),
        "states": sorted(
            (_shape(chart, chart.nodes[child]) for child in node.children),
            key=lambda state: str(state["key"]),
        ),
    }


def _line(chart: Chart, transition: Transition) -> str:
    targets = ",".join(chart.nodes[target].id for target in transition.targets)
    return f"{chart.nodes[transition.source].id}|{transition.event}|{targets}"
