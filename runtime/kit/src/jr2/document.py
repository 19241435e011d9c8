"""What is shown of a Machine and of a run: the structure tree, and the view after a step.

Both are for reading only. The tree is open to everybody, so it holds names and schemas of events
and nothing of a run; the view holds the context and is for the Instance token.

Source: spec/runtime.md §1.3, §1.4 (`GET /workflows/{name}/machine`), §1.7 and §1.9.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import JsonValue

from . import accepted, host_wire
from .chart import Chart, Node, Transition
from .events import Event, audience, description, event_name
from .kernel import gate_id
from .snapshot import Snapshot


def document(chart: Chart) -> dict[str, Any]:
    """Return the structure of a Machine as JSON.

    `states` nest as in the chart. A transition has an `event`, which is `""` for an eventless one,
    its `targets` as paths, and whether it is `guarded`. `opaqueStates` lists states whose children
    cannot be known before they run; this form of Machine has none.
    """
    return {
        "machine": chart.id,
        "initial": _initial(chart, chart.nodes[0]),
        "on": _transitions(chart, chart.nodes[0]),
        "states": [_state(chart, chart.nodes[child]) for child in chart.nodes[0].children],
        "events": [
            {**accepted_event(event), "audience": audience(event)} for event in chart.events
        ],
        "opaqueStates": [],
    }


def accepted_event(event: type[Event]) -> dict[str, Any]:
    """Return an event as `{name, description?, input}`, where `input` is its JSON Schema."""
    told: dict[str, Any] = {"name": event_name(event)}
    text = description(event)
    if text is not None:
        told["description"] = text
    told["input"] = accepted.schema(event)
    return told


def view(chart: Chart, snapshot: Snapshot) -> host_wire.View:
    """Return what is shown of a run."""
    return host_wire.View(
        status=snapshot.status,
        value=value(chart, snapshot),
        context=json.loads(snapshot.context_json),
        output=json.loads(snapshot.output_json),
        fault=snapshot.fault,
        gates=[
            host_wire.OpenGate(
                gate=opened.gate,
                id=gate_id(chart.nodes[index], snapshot.entries[index]),
                path=list(chart.nodes[index].path),
                accepts=[accepted_event(event) for event in _accepts(chart.nodes[index])],
                meta=json.loads(opened.meta),
            )
            for index, opened in snapshot.gates.items()
        ],
    )


def value(chart: Chart, snapshot: Snapshot) -> JsonValue:
    """Return the active states: a name, or `{state: …}` around it; `{}` before the first one."""
    shown: JsonValue = {}
    for index in sorted(snapshot.entries, reverse=True):
        key = chart.nodes[index].key
        shown = {key: shown} if chart.nodes[index].children else key
    return shown


def _accepts(node: Node) -> tuple[type[Event], ...]:
    return () if node.gate is None else node.gate.accepts


def _state(chart: Chart, node: Node) -> dict[str, Any]:
    told: dict[str, Any] = {
        "key": node.key,
        "id": node.id,
        "type": node.kind,
        "on": _transitions(chart, node),
        "invokes": [{"id": one.id, "src": one.slot, "kind": "task"} for one in node.invocations],
    }
    if node.gate is not None:
        told["gate"] = {
            "id": node.gate.gate if isinstance(node.gate.gate, str) else None,
            "accepts": [event_name(event) for event in node.gate.accepts],
        }
    if node.children:
        told["initial"] = _initial(chart, node)
        told["states"] = [_state(chart, chart.nodes[child]) for child in node.children]
    return told


def _initial(chart: Chart, node: Node) -> str | None:
    return None if node.initial is None else chart.nodes[node.initial].key


def _transitions(chart: Chart, node: Node) -> list[dict[str, Any]]:
    return [_transition(chart, transition) for transition in node.transitions]


def _transition(chart: Chart, transition: Transition) -> dict[str, Any]:
    return {
        "event": transition.event,
        "targets": [chart.nodes[target].id for target in transition.targets],
        "guarded": transition.guard is not None,
    }
