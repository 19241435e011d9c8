"""An event that was not taken."""

from __future__ import annotations

from typing import Literal

from jr2 import host_wire
from jr2.snapshot import json_text

from ..store import Run


class EventRefused(Exception):
    """The event was not taken and nothing changed.

    Args:
        code: the HTTP status of the answer.
        message: what the sender did wrong, and what would be right.
    """

    def __init__(self, code: Literal[400, 404, 409, 412, 413, 500, 503, 507], message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def refused(reply: object) -> EventRefused:
    """Return why an event or a start was refused, by what the Assembly process answered."""
    match reply:
        case host_wire.Refused():
            return EventRefused(reply.code, reply.error)
        case host_wire.Broken():
            return EventRefused(500, reply.error)
        case _:
            return EventRefused(500, "the Assembly process answered something else")


def settled(run: Run) -> EventRefused:
    """Return why a run that is over takes no event."""
    return EventRefused(404, f"run {run.id} has settled ({run.status}); no Gate of it is open")


def not_open(run: Run, gate: str) -> EventRefused | None:
    """Return why an event cannot be for a Gate, naming those that are open; `None` when it may be.

    What is shown of a run is parsed only when the Gate is not found in its text: the Assembly
    process decides.
    """
    if f'"gate":{json_text(gate)}' in run.view:
        return None
    gates = [each["gate"] for each in run.shown().get("gates", [])]
    if gate in gates:
        return None
    listed = ", ".join(gates) or "none"
    return EventRefused(404, f'no Gate "{gate}" is open — open Gates: {listed}')
