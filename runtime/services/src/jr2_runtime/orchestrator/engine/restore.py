"""After a start: which live runs go on, and which cannot, said in one line.

A run keeps its Assembly, so its Machine has the shape that it was saved under, unless the program
computes shapes in another way, or the Assembly lost the Workflow. That is compared before anything
of the run is asked again. An Assembly that does not load fails its runs for now: they stay live,
and are tried again whenever they are touched. Runs that go on are not mentioned.

Source: spec/runtime.md §1.1 and §1.8, ADR-0030.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from jr2 import host_wire, names

from ..store.rows import Settled

_MOST_NAMED: Final = 20

log = logging.getLogger("jr2.engine")


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """Live runs whose Machine is not the one that they were saved under."""

    workflow: str
    shape: str
    status: Settled
    reason: str


def misfit(workflow: str, shape: str, loaded: host_wire.Loaded) -> Misfit | None:
    """Return why runs saved under a shape cannot go on; `None` when they can.

    Args:
        workflow: their Workflow.
        shape: what they were saved under.
        loaded: what their Assembly holds.
    """
    now = next((each.shape for each in loaded.workflows if each.name == workflow), None)
    if now == shape:
        return None
    if now is None:
        return Misfit(
            workflow=workflow,
            shape=shape,
            status="lost",
            reason=f'workflow "{workflow}": the Assembly has no workflow of that name any more',
        )
    return Misfit(
        workflow=workflow,
        shape=shape,
        status="drifted",
        reason=(
            f'workflow "{workflow}": the Machine has shape {now}; the run was saved under {shape}'
        ),
    )


def misfits(saved: Iterable[tuple[str, str]], loaded: host_wire.Loaded) -> list[Misfit]:
    """Return each Workflow and shape whose runs cannot go on."""
    found = (misfit(workflow, shape, loaded) for workflow, shape in saved)
    return [each for each in found if each is not None]


@dataclass(slots=True, kw_only=True)
class Restored:
    """The runs of a start that do not go on, by what became of them."""

    lost: list[str] = field(default_factory=list)
    drifted: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def announce(self) -> None:
        """Write the line, when there is something to say."""
        named: dict[str, Sequence[str]] = {
            "lost": self.lost,
            "drifted": self.drifted,
            "failed": self.failed,
        }
        if not any(named.values()):
            return
        counts = {what: len(runs) for what, runs in named.items()}
        ids = {f"{what}_runs": list(runs[:_MOST_NAMED]) for what, runs in named.items() if runs}
        log.warning("runs that do not go on after the start", extra={**counts, **ids})


def failed_to_load(assembly: str, reason: str) -> None:
    """Say that an Assembly which live runs hold does not load."""
    log.error(
        "an Assembly that live runs hold does not load",
        extra={"assembly": assembly[: names.SHORT_HASH], "reason": reason},
    )
