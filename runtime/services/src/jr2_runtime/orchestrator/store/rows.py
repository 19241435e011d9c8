"""The rows of the store as frozen data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

Settled = Literal["done", "error", "cancelled", "lost", "drifted"]
Live = Literal["live"]
SETTLED: Final[tuple[Settled, ...]] = ("done", "error", "cancelled", "lost", "drifted")


UNREADABLE: Final = "what is stored of this run cannot be read"


class Stale(Exception):
    """The row is not what the writer believed: the run settled, or the event was consumed.

    The transaction of the writer changed nothing.
    """


class Run(NamedTuple):
    """One run. `view` is what may be shown of it, as JSON text; `snapshot` is opaque.

    A tuple, for each step makes one, and a frozen class takes three times as long.
    """

    id: str
    instance_id: str
    workflow: str
    assembly: str
    shape: str
    status: Live | Settled
    reason: str | None
    seq: int
    """How many transitions were committed; it orders what watchers see."""
    view: str
    snapshot: bytes = b""
    """Empty where a query does not read it."""
    gates: int = 0
    """How many Gates are open."""

    def shown(self) -> dict[str, Any]:
        """Return the view as data; one that a damaged disk has changed says so, and hides no other."""
        try:
            view = json.loads(self.view)
        except (ValueError, RecursionError):
            view = None
        return view if isinstance(view, dict) else {"value": None, "fault": UNREADABLE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task that has started and whose result is not recorded yet."""

    run: str
    workflow: str
    assembly: str
    key: str
    machine: tuple[str, ...]
    slot: str
    input: str
    """JSON text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """One armed timer."""

    run: str
    key: str
    due_at: int
    """Milliseconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """One Assembly on the volume; `workflows` is what its process said of them, as JSON text."""

    hash: str
    kit_version: str
    instance: str
    workflows: str
    current: bool
