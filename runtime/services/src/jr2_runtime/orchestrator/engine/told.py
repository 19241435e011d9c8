"""What watchers are told of a step: for each feed the frames that its band may see.

Source: spec/runtime.md §1.3 and §1.5.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..feeds import Feeds, Frame, Topic
from ..store.rows import Run
from . import shown


def tell(feeds: Feeds, run: Run, emitted: Sequence[str], current: str | None) -> None:
    """Give each watcher of a run, or of its Workflow, the frames of one step.

    Args:
        feeds: the watchers; a frame is built only for those that are there.
        run: after the step.
        emitted: what its author emitted, each the JSON text of one event.
        current: the hash of the current Assembly.
    """
    if feeds.is_empty:
        return
    own, observed = Topic("run", run.id), Topic("observed", run.id)
    workflow = Topic("workflow", run.workflow)
    if feeds.is_watched(own):
        for text in emitted:
            feeds.publish(own, Frame(event="emit", data=text, run=run.id, seq=run.seq))
        feeds.publish(own, status_frame(run, current))
    watched = [topic for topic in (observed, workflow) if feeds.is_watched(topic)]
    if not watched:
        return
    frames = [_said(run, text) for text in emitted]
    frames.append(observed_frame(run))
    for frame in frames:
        feeds.publish(observed, frame)
        feeds.publish(workflow, replace(frame, last=False))
    if run.status != "live":
        feeds.publish(workflow, _frame("gone", {"runId": run.id}, run))


def status_frame(run: Run, current: str | None) -> Frame:
    """Return everything of a run; the last frame of its feed when it has settled."""
    return Frame(
        event="status",
        data=shown.status_text(run, current),
        run=run.id,
        seq=run.seq,
        last=run.status != "live",
    )


def observed_frame(run: Run) -> Frame:
    """Return what anybody may see of a run; the last frame of its feed when it has settled."""
    frame = _frame("status", shown.dump(shown.observation(run)), run)
    return replace(frame, last=run.status != "live")


def runs_frame(runs: Sequence[Run]) -> Frame:
    """Return the opening frame of a Workflow's feed: every live run, as anybody may see it."""
    observed = [shown.dump(shown.observation(run)) for run in runs]
    return Frame(event="runs", data=json.dumps(observed, separators=(",", ":")))


def _said(run: Run, text: str) -> Frame:
    """Return an emitted event without its payload."""
    return _frame("emit", {"runId": run.id, "type": json.loads(text)["type"]}, run)


def _frame(event: Any, data: dict[str, Any], run: Run) -> Frame:
    text = json.dumps(data, separators=(",", ":"))
    return Frame(event=event, data=text, run=run.id, seq=run.seq)
