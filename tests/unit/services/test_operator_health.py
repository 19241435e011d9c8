"""When the operator counts as healthy."""

from __future__ import annotations

import pytest

from jr2_runtime.operator.health import SILENCE_LIMIT, Reading, problems

LISTED = Reading(answer="listed")
SILENT = Reading(answer="unreachable", detail="ConnectError: refused")
FORBIDDEN = Reading(answer="refused", detail="repos is forbidden")


@pytest.mark.parametrize(
    ("readings", "listed_at", "now", "found"),
    [
        ({"repos": LISTED, "sandboxes": LISTED}, {"repos": 9.0, "sandboxes": 9.0}, 10.0, []),
        ({"repos": SILENT}, {"repos": 10.0}, 10.0 + SILENCE_LIMIT, []),
        (
            {"repos": SILENT, "sandboxes": LISTED},
            {"repos": 10.0, "sandboxes": 400.0},
            11.0 + SILENCE_LIMIT,
            ["repos: not listed for 301 s: ConnectError: refused"],
        ),
        (
            {"repos": FORBIDDEN},
            {"repos": 10.0},
            10.0,
            ["repos: the API refuses the list: repos is forbidden"],
        ),
    ],
    ids=["all listed", "short silence", "long silence", "refused"],
)
def test_health(
    readings: dict[str, Reading], listed_at: dict[str, float], now: float, found: list[str]
) -> None:
    assert problems(readings, listed_at, now) == found
