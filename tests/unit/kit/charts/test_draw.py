"""A Machine as a Chart: each part of it is drawn, and the same Machine gives the same text."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jr2 import charts
from jr2.chart import Invocation
from jr2.charts import statements
from tests.charts import after, chart, has_sha, runs, ticket, unnamed, waits

ROOT = Path(__file__).parents[4]


def fault_of_a_turn() -> Invocation:
    return dataclasses.replace(runs("t", "a", "turn"), failed="agent.fault")


def drawn(tree: dict[str, Any], **children: Any) -> list[str]:
    return statements.read(charts.draw(chart("m", tree, **children)))


def test_the_whole_text_of_a_small_machine() -> None:
    tree = {
        "initial": ["waiting"],
        "states": {
            "waiting": {"gate": waits(None), "on": [("approve", ["done"], None)]},
            "done": {"kind": "final"},
        },
    }

    assert charts.draw(chart("review", tree)) == (
        "%% The Machine review, written by `jr2 chart`: edit the Machine, then\n"
        "%% run it again. Comments, styles and a direction may be added here.\n"
        "stateDiagram-v2\n"
        "    [*] --> waiting\n"
        '    state "waiting" as waiting\n'
        "    waiting : waits at Gate waiting\n"
        '    state "done" as done\n'
        "    done --> [*]\n"
        "    waiting --> done : approve\n"
    )


@pytest.mark.parametrize(
    ("state", "line"),
    [
        ({"on": [("go", ["b"], has_sha)]}, "a --> b : go [has_sha]"),
        ({"on": [("go", ["b"], unnamed)]}, "a --> b : go [guard]"),
        ({"on": [("", ["b"], unnamed)]}, "a --> b : always [guard]"),
        ({"on": [("*", ["b"], None)]}, "a --> b : any event"),
        ({"on": [("go", [], None)]}, "a --> a : go (stays)"),
        ({"on": [("go", ["a"], None)]}, "a --> a : go"),
        ({"on": [("error.*", ["b"], None)]}, "a --> b : error.#42;"),
        (
            {"on": [("after.a.0", ["b"], None)], "timers": [after("after.a.0", timedelta(7))]},
            "a --> b : after 7d",
        ),
        (
            {"on": [("after.a.0", ["b"], None)], "timers": [after("after.a.0", has_sha)]},
            "a --> b : after (computed)",
        ),
        (
            {"on": [("done.task.a.t", ["b"], None)], "runs": [runs("t", "a")]},
            "a --> b : t done",
        ),
        (
            {"on": [("error.task.a.t", ["b"], None)], "runs": [runs("t", "a")]},
            "a --> b : t failed",
        ),
        (
            {"on": [("agent.fault", ["b"], None)], "runs": [fault_of_a_turn()]},
            "a --> b : agent.fault",
        ),
        ({"runs": [runs("t", "a")]}, "a : runs t"),
        ({"runs": [runs("t", "a", "effect")]}, "a : Effect t"),
        ({"runs": [runs("t", "a", "turn")]}, "a : Turn of t"),
        ({"runs": [runs("t", "a", "sandbox")]}, "a : Sandbox"),
        ({"gate": waits("there")}, "a : waits at Gate there"),
        ({"gate": waits(has_sha)}, "a : waits at Gate (computed)"),
    ],
)
def test_what_a_state_does(state: dict[str, Any], line: str) -> None:
    tree = {"initial": ["a"], "states": {"a": state, "b": {"kind": "final"}}}

    assert line in drawn(tree)


def test_what_a_state_with_others_in_it_does_starts_inside() -> None:
    inner = {
        "initial": ["s.x"],
        "states": {"x": {}, "y": {}},
        "runs": [runs("t", "s")],
        "on": [
            ("in", ["s.y"], None),
            ("stay", [], None),
            ("out", ["b"], None),
            ("self", ["s"], None),
        ],
    }
    tree = {
        "initial": ["s"],
        "states": {"s": inner, "b": {}},
        "on": [("reset", ["b"], None), ("done.state.s", ["b"], None)],
    }

    assert drawn(tree) == [
        "[*] --> s",
        'state "s · runs t" as s {',
        "[*] --> s__x",
        'state "x" as s__x',
        'state "y" as s__y',
        'state "any state in s" as s__any',
        "}",
        'state "b" as b',
        'state "any state" as any',
        "s__any --> s__y : in",
        "s__any --> s__any : stay (stays)",
        "s --> b : out",
        "s --> s : self",
        "any --> b : reset",
        "any --> b : done",
    ]


def test_regions_stand_beside_each_other() -> None:
    regions = {name: {"initial": [f"p.{name}.x"], "states": {"x": {}}} for name in ("l", "r")}
    tree = {
        "initial": ["p"],
        "states": {"p": {"kind": "parallel", "states": regions, "on": [("x", ["p.r.x"], None)]}},
    }

    lines = drawn(tree)

    assert lines.count("--") == 2
    assert lines[1:4] == ['state "p" as p {', "[*] --> p__l", 'state "l" as p__l {']
    assert lines[-1] == "p__any --> p__r__x : x"


@pytest.mark.parametrize(("deep", "label"), [(False, "H back"), (True, "H#42; back")])
def test_history_says_what_it_enters_at_first(deep: bool, label: str) -> None:
    back = {"kind": "history", "deep": deep, "initial": ["s.x"]}
    inner = {"initial": ["s.x"], "states": {"x": {}, "back": back}}
    tree = {"initial": ["s"], "states": {"s": inner, "b": {"on": [("go", ["s.back"], None)]}}}

    lines = drawn(tree)

    assert f'state "{label}" as s__back' in lines
    assert lines[-2:] == ["s__back --> s__x : at first", "b --> s__back : go"]


def test_a_child_machine_is_drawn_in_the_state_that_invokes_it() -> None:
    child = chart("inner", {"initial": ["x"], "states": {"x": {}}})
    tree = {
        "initial": ["a"],
        "states": {
            "a": {
                "runs": [
                    runs("one", "a", "child"),
                    runs("many", "a", "pool"),
                    runs("inline:inner", "a", "child"),
                ],
                "on": [("done.child.a.one", ["a"], None)],
            }
        },
    }

    lines = drawn(tree, one=child, many=child, **{"inline:inner": child})

    assert [line for line in lines if line.endswith("{")] == [
        'state "a" as a {',
        'state "Machine inner (slot one)" as a__one {',
        'state "Machine inner (pool many)" as a__many {',
        'state "Machine inner (inline)" as a__inline_inner {',
    ]
    assert lines.count("--") == 2
    assert {"a__one__x", "a__many__x", "a__inline_inner__x"} <= {
        line.removeprefix("[*] --> ") for line in lines
    }
    assert lines[-1] == "a --> a : inner done"


def test_the_same_machine_gives_the_same_text_in_each_process() -> None:
    here = charts.draw(ticket())
    assert charts.draw(ticket()) == here

    for seed in ("1", "2"):
        code = "from tests.charts import ticket; from jr2 import charts; import sys; sys.stdout.write(charts.draw(ticket()))"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == here


NAME = st.from_regex(r"[a-zA-Z0-9_-]{1,6}", fullmatch=True)
TREES: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.just({}),
    lambda inner: st.dictionaries(NAME, inner, max_size=3).map(lambda states: {"states": states}),
    max_leaves=12,
)


@given(TREES, st.data())
def test_each_chart_parses_and_has_an_id_for_each_state(tree: dict[str, Any], data: Any) -> None:
    paths: list[str] = []

    def collect(part: dict[str, Any], path: str) -> None:
        part["kind"] = (
            data.draw(st.sampled_from(["compound", "parallel"])) if part.get("states") else "atomic"
        )
        for name, one in part.get("states", {}).items():
            below = f"{path}.{name}".removeprefix(".")
            paths.append(below)
            collect(one, below)

    collect(tree, "")
    if paths:
        tree["on"] = [("go", [data.draw(st.sampled_from(paths))], None)]

    lines = statements.read(charts.draw(chart("m", tree)))

    ids = [line.split(" as ")[1].removesuffix(" {") for line in lines if line.startswith("state ")]
    assert len(set(ids)) == len(ids) >= len(paths)
    for line in lines:
        if " --> " in line:
            ends = line.split(" : ")[0].split(" --> ")
            assert set(ends) <= {*ids, "[*]"}
