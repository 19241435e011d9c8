"""The Orchestrator's time while the machine's clock is set."""

from __future__ import annotations

import logging

import pytest

from jr2_runtime.orchestrator.clock import WallClock

HOUR = 3_600_000


class Machine:
    """A machine whose clock can be set; milliseconds."""

    def __init__(self) -> None:
        self.wall = self.steady = 1_000_000_000

    def clock(self) -> WallClock:
        return WallClock(lambda: self.wall * 1_000_000, lambda: self.steady * 1_000_000)

    def passes(self, milliseconds: int) -> None:
        self.wall += milliseconds
        self.steady += milliseconds


def test_the_time_is_the_machines_own() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.passes(1234)
    assert clock.now() == 1_000_001_234


def test_a_clock_that_is_set_back_is_not_followed(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    clock = machine.clock()
    machine.passes(500)
    machine.wall -= HOUR
    with caplog.at_level(logging.WARNING):
        assert clock.now() == 1_000_000_500
    assert caplog.messages == ["the clock went back by 3600 s; the time goes on"]
    machine.passes(40)
    assert clock.now() == 1_000_000_540
    machine.wall -= HOUR
    machine.passes(60)
    assert clock.now() == 1_000_000_600


def test_a_clock_that_is_set_forward_is_followed() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall += HOUR
    assert clock.now() == 1_000_000_000 + HOUR


def test_what_is_set_back_and_then_right_again_moves_nothing() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall -= HOUR
    assert clock.now() == 1_000_000_000
    machine.wall += HOUR
    machine.passes(7)
    assert clock.now() == 1_000_000_007
    machine.wall += HOUR
    assert clock.now() == 1_000_000_007 + HOUR


def test_a_clock_that_is_steered_is_followed_and_never_goes_back() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.steady += 30_000
    machine.wall += 29_985
    assert clock.now() == 1_000_029_985
    machine.wall -= 10
    assert clock.now() == 1_000_029_985


def test_a_restart_begins_with_the_machines_time() -> None:
    machine = Machine()
    machine.clock().now()
    machine.wall -= HOUR
    assert machine.clock().now() == 1_000_000_000 - HOUR
