"""Lines of an event stream become events."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jr2_cli import sse


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("data: 1\n\n", [("message", "1", "")]),
        ("event: status\ndata: 1\n\n", [("status", "1", "")]),
        ("data: a\ndata: b\n\n", [("message", "a\nb", "")]),
        ("data:a\ndata\n\n", [("message", "a\n", "")]),
        ("data:  a\n\n", [("message", " a", "")]),
        (": silent\n\ndata: 1\n\n", [("message", "1", "")]),
        ("retry: 2000\nevent: runs\ndata: []\n\n", [("runs", "[]", "")]),
        ("id: 7\ndata: 1\n\ndata: 2\n\n", [("message", "1", "7"), ("message", "2", "7")]),
        ("event: emit\n\ndata: 1\n\n", [("message", "1", "")]),
        ("\ufeffdata: 1\n\n", [("message", "1", "")]),
        ("unknown: x\ndata: 1\n\n", [("message", "1", "")]),
        ("data: cut off\n", []),
        ("", []),
    ],
)
def test_events(text: str, events: list[tuple[str, str, str]]) -> None:
    read = [(one.name, one.data, one.id) for one in sse.events(text.splitlines())]

    assert events == read


@given(st.lists(st.tuples(st.sampled_from(["status", "emit"]), st.text("ab: \ufeff", min_size=1))))
def test_what_is_written_is_read(frames: list[tuple[str, str]]) -> None:
    lines = [
        line for name, data in frames for line in (f"event: {name}", f"data: {data}", "", ": ping")
    ]

    assert frames == [(one.name, one.data) for one in sse.events(lines)]
    assert all(one.id == two.id for one, two in pairwise(sse.events(lines)))
