"""Statecharts from nested dicts, for tests that need a shape and no behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from jr2 import Context
from jr2.chart import (
    Chart,
    ChildMachine,
    Gate,
    Invocation,
    InvocationKind,
    Node,
    Timer,
    Transition,
)
from jr2.run_data import Start


def has_sha(context: Any, event: Any) -> bool:
    return True


def unnamed(context: Any, event: Any) -> bool:
    return True


unnamed.__name__ = "<lambda>"


def runs(slot: str, path: str, kind: InvocationKind = "task") -> Invocation:
    """Something that runs in the state at a path."""
    return Invocation(
        id=slot,
        kind=kind,
        slot=slot,
        input=None,
        encode_input=lambda value: value,
        decode_output=lambda value: value,
        done=f"done.{kind}.{path}.{slot}",
        failed=f"error.{kind}.{path}.{slot}",
    )


def waits(gate: Any) -> Gate:
    """A Gate that accepts nothing."""
    return Gate(gate=gate, meta=None, accepts=())


def after(event: str, delay: Any) -> Timer:
    """A timer whose event is named."""
    return Timer(id=event, event=event, delay=delay)


def _start(value: Any) -> Start[Any]:
    raise AssertionError("a shape is never run")


def chart(id: str, tree: Mapping[str, Any], **children: Chart) -> Chart:
    """Build a chart.

    Args:
        id: the Machine's id.
        tree: `states` by key, `kind`, `initial` paths, `on` as (event, target paths, guard),
            `deep`, `runs`, `timers` and `gate`.
        **children: child Machines by slot.
    """
    nodes: list[dict[str, Any]] = []
    index: dict[str, int] = {}

    def add(key: str, part: Mapping[str, Any], path: tuple[str, ...], parent: int | None) -> int:
        at = len(nodes)
        own = path if parent is None else (*path, key)
        index[".".join(own)] = at
        nodes.append({"index": at, "path": own, "parent": parent, "part": part})
        below = tuple(add(name, one, own, at) for name, one in part.get("states", {}).items())
        nodes[at]["children"] = below
        return at

    add(id, tree, (), None)
    return Chart(
        id=id,
        nodes=tuple(_node(node, index) for node in nodes),
        context=Context,
        start=lambda _: Context(),
        children={
            slot: ChildMachine(chart=one, start=_start, inline=slot.startswith("inline"))
            for slot, one in children.items()
        },
    )


def _node(node: dict[str, Any], index: Mapping[str, int]) -> Node:
    part = node.pop("part")
    transitions = tuple(
        Transition(
            source=node["index"],
            event=event,
            targets=tuple(index[target] for target in targets),
            guard=guard,
        )
        for event, targets, guard in part.get("on", ())
    )
    return Node(
        **node,
        kind=part.get("kind") or ("compound" if node["children"] else "atomic"),
        initial=tuple(index[path] for path in part.get("initial", ())),
        deep=part.get("deep", False),
        transitions=transitions,
        invocations=tuple(part.get("runs", ())),
        timers=tuple(part.get("timers", ())),
        gate=part.get("gate"),
    )


def ticket() -> Chart:
    """Nested and parallel states, both histories, child Machines, timers, guards, odd names."""
    child = chart(
        "task",
        {
            "initial": ["work"],
            "on": [("cancel", ["end"], None)],
            "states": {
                "work": {
                    "runs": [runs("coder", "work", "turn")],
                    "on": [("finish", ["end"], None)],
                },
                "end": {"kind": "final"},
            },
        },
    )
    lint = {
        "initial": ["working.checks.lint.run"],
        "states": {
            "run": {
                "runs": [runs("lint", "working.checks.lint.run")],
                "on": [
                    ("done.task.working.checks.lint.run.lint", ["working.checks.lint.ok"], None),
                    ("error.task.working.checks.lint.run.lint", ["working.coding"], None),
                ],
            },
            "ok": {"kind": "final"},
        },
    }
    test = {
        "initial": ["working.checks.test.run"],
        "states": {
            "run": {
                "timers": [after("after.t.0", timedelta(hours=1, minutes=30))],
                "on": [("after.t.0", ["working.checks.test.ok"], None)],
            },
            "ok": {"kind": "final"},
            "resume": {
                "kind": "history",
                "deep": True,
                "initial": ["working.checks.test.run"],
            },
        },
    }
    working = {
        "initial": ["working.coding"],
        "runs": [runs("watch", "working", "effect")],
        "on": [
            ("restart", ["working.coding"], unnamed),
            ("stop", ["review"], None),
            ("done.state.working", ["review"], None),
        ],
        "states": {
            "coding": {
                "runs": [runs("coder", "working.coding", "turn")],
                "on": [
                    ("submit", ["working.checks"], has_sha),
                    ("agent.fault", ["review"], None),
                ],
            },
            "checks": {
                "kind": "parallel",
                "on": [("again", ["working.checks.lint.run"], None)],
                "states": {"lint": lint, "test": test},
            },
            "last": {"kind": "history", "initial": ["working.coding"]},
        },
    }
    review = {
        "gate": waits('a "gate": {x}; %% direction LR <b>`*#1'),
        "on": [
            ("approve", ["delegating"], None),
            ("resume", ["working.last"], None),
            ("deep", ["working.checks.test.resume"], None),
            ("both", ["working.checks.lint.ok", "working.checks.test.run"], None),
        ],
    }
    delegating = {
        "runs": [runs("sub", "delegating", "child"), runs("each", "delegating", "pool")],
        "timers": [after("after.d.0", lambda context: timedelta(1))],
        "on": [
            ("done.child.delegating.sub", ["done"], None),
            ("after.d.0", ["lost"], None),
            ("*", [], None),
            ("", ["done"], unnamed),
        ],
    }
    odd = ["state", "default", "a-b", "a_b", "__proto__", "constructor", "1", "-", "_x_", "end"]
    return chart(
        "ticket",
        {
            "initial": ["working"],
            "on": [("workspace.lost", ["lost"], None), ("note", [], None)],
            "states": {
                "working": working,
                "review": review,
                "delegating": delegating,
                "done": {"kind": "final"},
                "lost": {"kind": "final"},
                **{name: {"on": [("go-on", ["done"], None)]} for name in odd},
            },
        },
        sub=child,
        each=child,
    )
