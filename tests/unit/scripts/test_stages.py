"""The streams of `scripts/test`: what runs beside what, what is shown, and how it ends."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import LIMIT

RUNNING = ("left", "right", "middle")
SCRIPT = Path(__file__).parents[3] / "scripts" / "stages.py"


@pytest.fixture(scope="module")
def stages() -> Iterator[Any]:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("jr2_test_stages", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look for their module there.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


class Told:
    """A suite, and what it said."""

    def __init__(self, stages: Any, folder: Path) -> None:
        self.said: list[str] = []
        self.suite = stages.Suite(say=self.said.append, cwd=folder)
        self._stages = stages

    def stage(self, name: str, script: str = "", *, is_set_up: bool = False) -> Any:
        return self._stages.Stage(name=name, command=("sh", "-c", script), is_set_up=is_set_up)

    def began(self) -> list[str]:
        return [
            text.removeprefix("== ").removesuffix(": begins")
            for text in self.said
            if text.endswith(": begins")
        ]


@pytest.fixture
def told(stages: Any, tmp_path: Path) -> Told:
    return Told(stages, tmp_path)


def waits_for(file: str) -> str:
    return f"while [ ! -e {file} ]; do sleep 0.02; done"


def test_three_streams_run_beside_each_other_and_share_what_is_left(told: Told) -> None:
    # Each waits for what the others make, so fewer streams would never end.
    made = ["a", "b", "c"]
    all_are_there = "; ".join(map(waits_for, made))
    cluster = (told.stage("a", f"touch a; {all_are_there}"), told.stage("a2"))
    others = (
        told.stage("b", f"touch b; {all_are_there}; {waits_for('d')}"),
        told.stage("c", f"touch c; {all_are_there}; {waits_for('d')}"),
        told.stage("d", "touch d"),
        told.stage("e"),
    )

    told.suite.beside(cluster, others)

    assert told.suite.report((), 0) == 0
    assert sorted(told.began()) == ["a", "a2", "b", "c", "d", "e"]
    # `b` and `c` held their streams until `d` had run, which therefore ran after the cluster's own.
    assert told.began().index("a2") < told.began().index("d")


def test_what_runs_beside_the_cluster_stages_is_nicer(told: Told, stages: Any) -> None:
    own = os.nice(0)
    nicer = min(own + stages.BEHIND, 19)
    lowered = f"for _ in $(seq 400); do [ $(nice) = {own} ] || break; sleep 0.05; done"
    grouped = "cat /proc/$$/autogroup 2>/dev/null || true"

    told.suite.beside(
        (told.stage("a", f"{waits_for('b')}; nice; {grouped}"),),
        (told.stage("b", f"{lowered}; nice; {grouped}; touch b"),),
    )

    shown = {ended.stage.name: ended.output.split() for ended in told.suite.ended}
    assert (shown["a"][0], shown["b"][0]) == (str(own), str(nicer))
    # Where Linux groups sessions, the last word is the niceness of the group.
    assert shown["a"][-1] == ("0" if len(shown["a"]) > 1 else str(own))
    assert shown["b"][-1] == (str(stages.BEHIND) if len(shown["b"]) > 1 else str(nicer))


def test_the_output_of_a_stage_is_one_piece_with_its_time(told: Told) -> None:
    ping = f"echo one; touch x; {waits_for('y')}; echo two >&2"
    pong = f"{waits_for('x')}; echo other; touch y"

    told.suite.beside((told.stage("ping", ping),), (told.stage("pong", pong),))

    pieces = [text for text in told.said if not text.endswith(": begins")]
    assert [text.splitlines()[1:] for text in sorted(pieces)] == [["one", "two"], ["other"]]
    assert all(text.splitlines()[0].endswith(" s") for text in pieces)


def test_red_tests_end_nothing_and_the_first_is_shown_whole_at_the_end(told: Told) -> None:
    red = told.stage("red", "echo why; exit 3")
    told.suite.beside((red, told.stage("green"), told.stage("late", "exit 1")), ())

    assert told.suite.report(("  before: 2 s",), 4) == 1
    table, first, last = told.said[-3:]
    assert table.splitlines()[:2] == ["== time", "  before: 2 s"]
    rows = re.sub(r"\d+ s$", "N s", table, flags=re.MULTILINE).splitlines()
    assert "  red: FAILED after N s" in rows
    assert "  green: N s" in rows
    assert first == "== the first that failed: red\nwhy"
    assert last == "FAILED: red, late"


def test_a_red_set_up_ends_what_stands_on_it_and_nothing_else(told: Told) -> None:
    cluster = (told.stage("cluster", "exit 1", is_set_up=True), told.stage("on it"))

    told.suite.beside(cluster, (told.stage("other"), told.stage("another")))

    assert told.suite.report((), 0) == 1
    assert sorted(told.began()) == ["another", "cluster", "other"]
    assert "  on it: not run" in told.said[-3].splitlines()


def test_a_program_that_is_not_there_is_a_red_stage(told: Told, stages: Any) -> None:
    told.suite.alone(stages.Stage(name="gone", command=("no-such-program-of-jr2",)))

    assert told.suite.report((), 0) == 1
    assert "cannot run no-such-program-of-jr2: No such file or directory" in told.said[-2]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_streams_and_shows_what_they_had_printed(
    tmp_path: Path, sent: signal.Signals
) -> None:
    program = f"""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("stages", {str(SCRIPT)!r})
stages = sys.modules["stages"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(stages)
def stage(name):
    script = (
        f"trap 'echo {{name}} cleaned up; exit 1' INT; echo {{name}} works; "
        f"touch {tmp_path}/{{name}}; while true; do sleep 0.05; done"
    )
    return stages.Stage(name=name, command=("sh", "-c", script))
stages.has_cluster = lambda: True
stages.FIRST = stages.Stage(name="first", command=("true",))
stages.CLUSTER = (stage("left"), stage("next"))
stages.OTHERS = (stage("right"), stage("middle"), stage("more"))
sys.exit(stages.main([]))
"""
    child = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + LIMIT
        while not all((tmp_path / name).exists() for name in RUNNING):
            assert time.monotonic() < end
            time.sleep(0.02)
        child.send_signal(sent)
        _, said = child.communicate(timeout=LIMIT)
    finally:
        child.kill()

    assert child.returncode == 130, said
    for name in RUNNING:
        assert f"{name} works\n{name} cleaned up" in said
        assert f"  {name}: FAILED after " in said
    assert "next: begins" not in said
    assert "more: begins" not in said
