"""The kubectl that waits beside a rollout: whose last words count, and how it is called."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jr2_infra.kubectl import RolloutStatus
from tests.waiting import LIMIT

if TYPE_CHECKING:
    from tests.unit.infra.rollout.conftest import Rollout


def program(folder: Path, body: str) -> Path:
    script = folder / "kubectl"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return script


def until(answer: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not answer():
        assert time.monotonic() < deadline


def test_the_words_of_a_kubectl_whose_limit_passed(rollout: Rollout, tmp_path: Path) -> None:
    kubectl = program(tmp_path, 'echo "error: timed out waiting for the condition" >&2; exit 1')
    workload = replace(rollout.workload, kind="StatefulSet")
    beside = RolloutStatus(kubectl, tmp_path / "config", workload)
    try:
        until(lambda: beside.last_words() is not None)
        words = (
            "Command failed: kubectl --namespace my-instance rollout status "
            "statefulset/jr2-orchestrator --timeout=180s\n"
            "error: timed out waiting for the condition"
        )
        # They stay the same, however often they are asked for.
        assert [beside.last_words(), beside.last_words()] == [words, words]
    finally:
        beside.stop()


def test_a_kubectl_that_lost_its_connection_has_no_words(rollout: Rollout, tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    kubectl = program(tmp_path, f'echo "error: watch closed" >&2; touch {ended}; exit 1')
    beside = RolloutStatus(kubectl, tmp_path / "config", rollout.workload)
    try:
        until(ended.exists)
        beside._child.wait(timeout=LIMIT)
        assert beside.last_words() is None
    finally:
        beside.stop()
