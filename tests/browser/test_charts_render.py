"""Charts as a browser draws them: each state and each transition is there, by its own name."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from jr2 import charts
from tests.charts import chart, ticket, waits

if TYPE_CHECKING:
    from tests.browser.conftest import Render

GATE = 'waits at Gate a "gate": {x}; %% direction LR <b>`*#1'
STATES = [
    *("coding", "checks", "lint", "run", "ok", "test", "review", "done", "lost", "work", "end"),
    *("state", "default", "a-b", "a_b", "__proto__", "constructor", "1", "-", "_x_"),
    *("working · Effect watch", "delegating", "H last", "H* resume"),
    *("any state", "any state in working", "any state in checks"),
    *("Machine task (slot sub)", "Machine task (pool each)"),
    *("Turn of coder", "runs lint", GATE),
]
EDGES = [
    *("submit [has_sha]", "agent.fault", "restart [guard]", "stop", "done", "again"),
    *("lint done", "lint failed", "after 1h 30m", "at first", "at first"),
    *("approve", "resume", "deep", "both", "both", "finish", "cancel", "finish", "cancel"),
    *("task done", "after (computed)", "any event (stays)", "always [guard]"),
    *("workspace.lost", "note (stays)", *["go-on"] * 10),
]


def test_a_nested_parallel_machine_has_each_state_and_transition(render: Render) -> None:
    picture = render(charts.draw(ticket()))

    assert set(STATES) - set(picture.words) == set()
    assert Counter(EDGES) == Counter(picture.edges)


def test_names_that_are_words_of_markup_are_shown_as_they_are(render: Render) -> None:
    names = ["<script>alert(1)</script>", "**bold** _it_ `code`", "a\u202eb", "1. x", "日本 é"]
    states = {
        f"s{at}": {"gate": waits(name), "on": [("go", [f"s{at}"], None)]}
        for at, name in enumerate(names)
    }

    picture = render(charts.draw(chart("names", {"initial": ["s0"], "states": states})))

    shown = {f"waits at Gate {name}".replace("\u202e", "\ufffd") for name in names}
    assert shown - set(picture.words) == set()


def test_a_parallel_root(render: Render) -> None:
    regions = {
        name: {
            "initial": [f"{name}.on"],
            "states": {"on": {"on": [("flip", [f"{name}.off"], None)]}, "off": {}},
        }
        for name in ("left", "right")
    }
    tree = {"kind": "parallel", "states": regions, "on": [("reset", ["left.on"], None)]}

    picture = render(charts.draw(chart("both", tree)))

    assert {"both", "left", "right", "on", "off", "any state"} <= set(picture.words)
    assert Counter(picture.edges) == Counter(["flip", "flip", "reset"])


def test_the_parallel_machine_of_the_docs(render: Render) -> None:
    page = (Path(__file__).parents[2] / "docs" / "machines.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```mermaid\n(.*?)^```$", page, re.M | re.S)

    picture = render(shown)

    assert {
        *("checking", "lint", "linting", "linted", "test", "testing", "tested", "H* back"),
        *("paused", "signing", "Machine signature (slot signature)", "waiting", "signed"),
        *("released", "lapsed", "waits at Gate signature.waiting", "waits at Gate paused"),
    } <= set(picture.words)
    assert Counter(picture.edges) == Counter(
        [
            *("lint_passed", "tests_passed", "at first", "at first", "pause", "done", "resume"),
            *("after 7d", "sign [is_named]", "signature done"),
        ]
    )
