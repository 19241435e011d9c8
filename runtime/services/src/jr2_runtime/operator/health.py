"""When the operator counts as healthy, decided from what its own requests were answered.

An API server that cannot be reached is not the operator's fault: a restart would not heal it, and
the back-off after restarts would keep the operator away for minutes after the API is back. So
silence counts only when it lasts. An answer that refuses counts at once: the kind is gone or the
permission is, and what the watches show is out of date.

Source: design §6.4 (liveness fed by real progress).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

SILENCE_LIMIT: Final = 300.0
"""Seconds without a list that succeeded, after which the operator is started again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How the API answered a list of one kind.

    Args:
        answer: `listed`, `refused` (the API said no) or `unreachable` (it said nothing).
        detail: the words of the API or of the connection; empty when it listed.
    """

    answer: Literal["listed", "refused", "unreachable"]
    detail: str = ""


def problems(
    readings: Mapping[str, Reading], listed_at: Mapping[str, float], now: float
) -> list[str]:
    """Return what makes the operator unhealthy, a sentence for each kind.

    Args:
        readings: the newest reading of each kind.
        listed_at: when each kind was listed last, in seconds of a monotonic clock.
        now: the same clock.
    """
    found = []
    for kind, reading in sorted(readings.items()):
        silent = now - listed_at.get(kind, now)
        if reading.answer == "refused":
            found.append(f"{kind}: the API refuses the list: {reading.detail}")
        elif reading.answer == "unreachable" and silent > SILENCE_LIMIT:
            found.append(f"{kind}: not listed for {silent:.0f} s: {reading.detail}")
    return found
