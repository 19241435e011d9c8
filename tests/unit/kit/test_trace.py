"""The trace of a command: that of its environment, or a new one."""

from __future__ import annotations

import pytest

from jr2.trace import traceparent

GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_the_trace_of_the_environment_goes_on() -> None:
    assert traceparent({"TRACEPARENT": GIVEN}) == GIVEN


@pytest.mark.parametrize(
    "given", ["", "x", GIVEN.upper(), f"00-{'0' * 32}-b7ad6b7169203331-01", GIVEN + "\nX: y"]
)
def test_what_is_no_trace_begins_a_new_one(given: str) -> None:
    first, second = (traceparent({"TRACEPARENT": given}) for _ in range(2))
    assert first != second
    assert traceparent({"TRACEPARENT": first}) == first
