"""What is shown of a Machine and of a run: the structure tree, and the view after a step.

Both are for reading only. The tree is open to everybody, so it holds names and schemas of events
and nothing of a run; the view holds the context and is for the Instance token.

Source: spec/runtime.md §1.3, §1.4 (`GET /workflows/{name}/machine`), §1.7 and §1.9.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import JsonValue

from . import accepted, host_wire
from .chart import ROOT, Chart, Node, Transition
from .events import Event, audience, description, event_name
from .kernel.keys import ROOT_PLACE, Place, gate_key, inside
from .shape import is_opaque
from .snapshot import Snapshot, json_text


def document(chart: Chart) -> dict[str, Any]:
    """Return the structure of a Machine as JSON.

    `states` nest as in the chart, regions and history among them. A transition has an `event`,
    which is `""` for an eventless one, its `targets` as paths, and whether it is `guarded`.
    `machines` are the structures of the child Machines, by the slot that an invocation has as its
    `src`. `opaqueStates` lists states of which only the run knows how many children they have.
    """
    return {
        "machine": chart.id,
        "initial": _initial(chart, chart.nodes[0]),
        "on": _transitions(chart, chart.nodes[0]),
        "states": [_state(chart, chart.nodes[child]) for child in chart.nodes[0].children],
        "events": [
            {**accepted_event(event), "audience": audience(event)} for event in chart.events
        ],
        "machines": {slot: document(child.chart) for slot, child in chart.children.items()},
        "opaqueStates": [node.id for node in chart.nodes if is_opaque(node)],
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
    return host_wire.View.model_validate_json(view_json(chart, snapshot))


def view_json(chart: Chart, snapshot: Snapshot) -> str:
    """Return what is shown of a run as the JSON text of a `host_wire.View`.

    The text is put together from texts that are there already, the context's among them, for this
    is done in each step.
    """
    is_open = snapshot.status == "active" and (snapshot.gates or snapshot.children)
    at_gates = _gates(chart, snapshot, ROOT_PLACE) if is_open else ()
    children = _actors(chart, snapshot, ROOT_PLACE) if snapshot.children else ()
    return (
        f'{{"status":"{snapshot.status}","value":{json_text(value(chart, snapshot))},'
        f'"context":{snapshot.context_json},"output":{snapshot.output_json},'
        f'"children":[{",".join(children)}],"fault":{json_text(snapshot.fault)},'
        f'"gates":[{",".join(at_gates)}]}}'
    )


def value(chart: Chart, snapshot: Snapshot) -> JsonValue:
    """Return the active states: a name, or `{state: …}` around it; `{}` before the first one.

    A parallel state has each of its regions in it.
    """
    return _value(chart, snapshot, ROOT)


def _value(chart: Chart, snapshot: Snapshot, index: int) -> JsonValue:
    shown: dict[str, JsonValue] = {}
    for child in chart.nodes[index].children:
        if child in snapshot.entries:
            inner = chart.nodes[child]
            if not inner.children and chart.nodes[index].kind != "parallel":
                return inner.key
            shown[inner.key] = _value(chart, snapshot, child)
    return shown


def _gates(chart: Chart, snapshot: Snapshot, place: Place) -> list[str]:
    """Return the open Gates of a Machine, then those of its children, each as JSON text."""
    found: list[str] = []
    for index, opened in snapshot.gates.items():
        node = chart.nodes[index]
        id_ = gate_key(place.prefix, node, snapshot.entries[index])
        found.append(
            f'{{"gate":{json_text(opened.gate)},"id":{json_text(id_)},'
            f'{_of_any_entry(node, place.actors)},"meta":{opened.meta}}}'
        )
    for key, child in snapshot.children.items():
        inner, within, _ = inside(chart, key, place)
        found += _gates(inner, child, within)
    return found


@lru_cache(maxsize=1024)
def _of_any_entry(node: Node, actors: tuple[str, ...]) -> str:
    """Return what is the same for each entry into a Gate, as members of a JSON object."""
    accepts = ",".join([_accepted_json(event) for event in _accepts(node)])
    return f'"path":{json_text([*actors, *node.path])},"accepts":[{accepts}]'


@lru_cache(maxsize=1024)
def _accepted_json(event: type[Event]) -> str:
    return json_text(accepted_event(event))


def _actors(chart: Chart, snapshot: Snapshot, place: Place) -> list[str]:
    """Return the child Machines that run as JSON texts, each with those that it runs itself."""
    found: list[str] = []
    for key, child in snapshot.children.items():
        inner, within, slot = inside(chart, key, place)
        told = json_text(
            {
                "id": within.actors[-1],
                "path": list(within.actors),
                "src": slot,
                "machine": inner.id,
                "status": child.status,
                "value": value(inner, child),
            }
        )
        children = ",".join(_actors(inner, child, within))
        found.append(f'{told[:-1]},"context":{child.context_json},"children":[{children}]}}')
    return found


def _accepts(node: Node) -> tuple[type[Event], ...]:
    return () if node.gate is None else node.gate.accepts


def _state(chart: Chart, node: Node) -> dict[str, Any]:
    told: dict[str, Any] = {
        "key": node.key,
        "id": node.id,
        "type": node.kind,
        "on": _transitions(chart, node),
        "invokes": [{"id": one.id, "src": one.slot, "kind": one.kind} for one in node.invocations],
    }
    for what, actions in (("entry", node.entry), ("exit", node.exit)):
        if actions:
            told[what] = [action.kind for action in actions]
    if node.gate is not None:
        told["gate"] = {
            "id": (
                node.gate.named or node.id if node.gate.gate is None else _fixed(node.gate.gate)
            ),
            "accepts": [event_name(event) for event in node.gate.accepts],
        }
    if node.kind == "history":
        told["deep"] = node.deep
        told["default"] = [chart.nodes[one].id for one in node.initial]
    if node.children:
        told["initial"] = _initial(chart, node)
        told["states"] = [_state(chart, chart.nodes[child]) for child in node.children]
    return told


def _fixed(gate: object) -> str | None:
    return gate if isinstance(gate, str) else None


def _initial(chart: Chart, node: Node) -> str | None:
    return chart.nodes[node.initial[0]].key if node.initial else None


def _transitions(chart: Chart, node: Node) -> list[dict[str, Any]]:
    return [_transition(chart, transition) for transition in node.transitions]


def _transition(chart: Chart, transition: Transition) -> dict[str, Any]:
    return {
        "event": transition.event,
        "targets": [chart.nodes[target].id for target in transition.targets],
        "guarded": transition.guard is not None,
    }
