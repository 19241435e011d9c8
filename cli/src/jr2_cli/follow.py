"""To follow a run until it settles, also across a connection that breaks.

A run is durable and its feed is level-triggered: after a break the command attaches again, reads
where the run stands now, and goes on. It says so once. What the run emitted in between is not
shown.

Source: spec/converge.md §2.5 (run, logs), spec/runtime.md §1.5.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jr2 import errors

from . import client as api
from .port_forward import ForwardFailed

if TYPE_CHECKING:
    from .client import Orchestrator
    from .output import Output
    from .target import Link

GIVE_UP_AFTER = 120.0
"""Seconds in which every try to attach again failed."""
_PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Seconds before each try; the last one repeats."""

LIVE = "active"
"""The one status of a run that has not settled."""


def until_settled(
    link: Link,
    run_id: str,
    out: Output,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:
    """Follow a run until it settles, and show what happens as it happens.

    Args:
        link: the way to the Orchestrator.
        run_id: the whole id.
        out: where the lines go.
        clock: seconds that only grow.
        sleep: how to wait.

    Returns:
        The status of the settled run, as the Orchestrator gave it.

    Raises:
        ApiFailed: the run is unknown.
        ConnectionLost: no attempt to attach succeeded for `GIVE_UP_AFTER` seconds.
    """
    try:
        return _follow(link, run_id, out, clock, sleep)
    except KeyboardInterrupt:
        out.line(f"the run goes on — {_how_to_go_on(run_id)}", code="left")
        raise


def _how_to_go_on(run_id: str) -> str:
    return f"`jr2 logs {run_id} -f` follows it"


def _follow(
    link: Link,
    run_id: str,
    out: Output,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> dict[str, Any]:
    viewer = _Viewer(out)
    failing_since: float | None = None
    tries = 0
    while True:
        try:
            with link.client.follow(run_id) as feed:
                for event in feed:
                    failing_since, tries = None, 0
                    status = viewer.show(event.name, event.data)
                    if status is not None and status.get("status") != LIVE:
                        return status
            lost: errors.StepFailed = api.ConnectionLost("the feed ended while the run was live")
        except (api.ConnectionLost, ForwardFailed) as error:
            lost = error
        except api.ApiFailed as error:
            if error.status < 500:
                raise
            lost = error
        now = clock()
        failing_since = now if failing_since is None else failing_since
        if now - failing_since > GIVE_UP_AFTER:
            raise api.ConnectionLost(
                f"{lost}\nthe run goes on without this command — {_how_to_go_on(run_id)}"
            ) from lost
        viewer.say_broken()
        link.drop()
        sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
        tries += 1


def first_status(client: Orchestrator, run_id: str) -> dict[str, Any]:
    """Return where a run stands, from the first frame of its feed.

    Raises:
        ApiFailed: the run is unknown.
        ConnectionLost: the feed said no status.
    """
    with client.follow(run_id) as feed:
        for event in feed:
            status = _object(event.data) if event.name == "status" else None
            if status is not None:
                return status
    raise api.ConnectionLost(f"the feed of run {run_id} ended before it said a status")


class _Viewer:
    """Writes a line for each frame; a status that was shown already is not shown again."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._shown: tuple[object, str] | None = None
        self._broken = False

    def show(self, name: str, data: str) -> dict[str, Any] | None:
        """Write the line of a frame; return the status when the frame is one."""
        value = _object(data)
        if value is None:
            return None
        match name:
            case "status":
                line = (value.get("status"), _compact(value.get("value")))
                if line != self._shown:
                    self._out.line(f"  → {line[0]} {line[1]}", code="status")
                    self._shown = line
                return value
            case "emit":
                self._out.line(f"  emit {_compact(value)}", code="emit")
            case "retry":
                attempt = f"  retry {value.get('child')} attempt {value.get('attempt')}"
                reason = value.get("reason")
                self._out.line(f"{attempt} ({reason})" if reason else attempt, code="retry")
            case _:
                # A frame of a kind that this version does not know is never read as a status.
                pass
        return None

    def say_broken(self) -> None:
        """Say once that the connection broke."""
        if not self._broken:
            self._broken = True
            self._out.line(
                "  the connection to the Orchestrator broke — the run goes on, attaching again",
                code="reattach",
            )


def _object(data: str) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
