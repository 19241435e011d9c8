"""Durable runs beside what a user would pick instead, with small counts; `scripts/bench` does more.

What the bounds are, and which hold, is the matter of `scripts/bench` on a quiet machine. With counts
as small as these the start weighs much, so a third of each bound is what a change must not lose.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.bench.durable.measure import Counts, rows, table
from tests.bench.durable.report import peers

ROOM = 3
SMALL = Counts(one=200, many=40, peer=0.5, peer_many=4, requests=30, rounds=3)


@pytest.mark.timeout(1200)
def test_durable_steps_are_faster_than_what_a_user_would_pick_instead(
    record_property: Callable[[str, object], None],
) -> None:
    measured = rows(peers(), SMALL)

    print(table(measured))
    for row in measured:
        record_property(row.what, round(row.ratio, 2))
    slow = [
        row.what
        for row in measured
        if row.bound is not None and not row.at_most and row.ratio < row.bound / ROOM
    ]
    assert not slow, table(measured)
