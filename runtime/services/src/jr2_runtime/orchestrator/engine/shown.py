"""A stored run as the routes and the feeds show it.

Source: spec/runtime.md §1.3 and §1.7.
"""

from __future__ import annotations

import json
from typing import Any

from jr2.wire import ChildView, RunObservation, RunState, RunStatus

from ..store.rows import Run
from ..store.runs import NO_NEXT_ACTION


def dump(model: RunStatus | RunObservation) -> dict[str, Any]:
    """Return a shape as JSON data, without what was not said."""
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def state(run: Run) -> RunState:
    """Return the word for a run's status: a live one is active."""
    return "active" if run.status == "live" else run.status


def status(
    run: Run, current: str | None, *, gates: bool = False, is_stuck: bool = False
) -> RunStatus:
    """Return everything that the Instance token may see of a run.

    Args:
        run: with its view.
        current: the hash of the current Assembly.
        gates: whether to list the open Gates.
        is_stuck: nothing will ever move it.
    """
    view = run.shown()
    fields: dict[str, Any] = {
        "run_id": run.id,
        "workflow": run.workflow,
        "instance_id": run.instance_id,
        "status": state(run),
        "value": view.get("value"),
        "context": view.get("context"),
        "children": view.get("children", []),
        "assembly": run.assembly,
        "older_assembly": run.assembly != current,
    }
    if view.get("output") is not None:
        fields["output"] = view["output"]
    if view.get("fault") is not None:
        fields["fault"] = view["fault"]
    if run.reason is not None:
        fields["reason"] = run.reason
    if is_stuck:
        fields["stuck"] = NO_NEXT_ACTION
    if gates:
        fields["gates"] = view.get("gates", []) if run.status == "live" else []
    return RunStatus(**fields)


def observation(run: Run) -> RunObservation:
    """Return what anybody may see of a run: no context, no payload, no reason."""
    view = run.shown()
    return RunObservation(
        run_id=run.id,
        workflow=run.workflow,
        status=state(run),
        value=view.get("value"),
        children=[_observed(child) for child in view.get("children", [])],
    )


def _observed(child: Any) -> ChildView:
    """Return a child with the fields that the open band has, at every depth."""
    known = child if isinstance(child, dict) else {}
    children = known.get("children")
    return ChildView(
        id=str(known.get("id", "")),
        src=str(known.get("src", "")),
        status=str(known.get("status", "active")),
        value=known.get("value"),
        children=[_observed(each) for each in children] if isinstance(children, list) else [],
    )


def status_text(run: Run, current: str | None, *, is_stuck: bool = False) -> str:
    """Return a run's status as JSON text in ASCII, as it stands in a list or in a feed's frame."""
    return json.dumps(dump(status(run, current, is_stuck=is_stuck)), separators=(",", ":"))
