"""The ballast: laid when there is room, thrown when there is none, laid again later."""

from __future__ import annotations

from pathlib import Path

from jr2_runtime.orchestrator.store.ballast import LOOK_AGAIN_SECONDS, Ballast

SIZE = 2**16


def test_it_is_laid_once_thrown_and_laid_again_after_a_while(tmp_path: Path) -> None:
    moment = 0.0
    path = tmp_path / "ballast"
    ballast = Ballast(path, size=SIZE, now=lambda: moment)
    assert not ballast.is_out()
    assert path.stat().st_size == SIZE
    ballast.throw()
    assert not path.exists()
    assert ballast.is_out()
    moment = LOOK_AGAIN_SECONDS - 0.01
    assert ballast.is_out()
    moment = LOOK_AGAIN_SECONDS
    assert not ballast.is_out()
    assert path.stat().st_size == SIZE
    # A new process finds it.
    assert not Ballast(path, size=SIZE, now=lambda: moment).is_out()


def test_without_room_it_is_out_from_the_start(tmp_path: Path) -> None:
    path = tmp_path / "ballast"
    assert Ballast(path, size=2**60).is_out()
    assert not path.exists()
