"""Texts and ids of a Chart: whatever a name holds, it is shown and is no syntax."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jr2.charts import labels


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("approve", "approve"),
        ("request-changes", "request-changes"),
        ("in_review", "in_review"),
        ("_x_", "#95;x#95;"),
        ("agent.fault", "agent.fault"),
        ('a "b"', "a #34;b#34;"),
        ("a: b; c", "a#58; b#59; c"),
        ("{x} [y] <z>", "#123;x#125; #91;y#93; #60;z#62;"),
        ("%%{init}%%", "#37;#37;#123;init#125;#37;#37;"),
        ("*", "#42;"),
        ("#1", "#35;1"),
        ("1. first", "1#46; first"),
        ("- item", "#45; item"),
        ("v1.2", "v1.2"),
        ("two\nlines\x00", "two#65533;lines#65533;"),
        ("a\u202eb", "a#65533;b"),
        ("日本 é", "日本 é"),
        ("Direction  tb", "Direction#32; tb"),
        ("x direction LR", "x direction#32;LR"),
        ("directions", "directions"),
    ],
)
def test_a_text(words: str, text: str) -> None:
    assert labels.text(words) == text


@given(st.text())
def test_no_text_is_syntax_and_each_is_shown(words: str) -> None:
    text = labels.text(words)

    plain = re.sub(r"#[0-9]+;", "", text)
    assert not set(plain) & set('"{}[]<>:;%#`*&|\\\n')
    shown = re.sub(r"#([0-9]+);", lambda match: chr(int(match[1])), text)
    assert shown == "".join(c if c.isprintable() else "\ufffd" for c in words)


@pytest.mark.parametrize(
    ("delay", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(days=7), "7d"),
        (timedelta(hours=1, minutes=30), "1h 30m"),
        (timedelta(seconds=90), "1m 30s"),
        (timedelta(milliseconds=1500), "1s 500ms"),
        (timedelta(microseconds=7), "7us"),
    ],
)
def test_a_duration(delay: timedelta, text: str) -> None:
    assert labels.duration(delay) == text


def test_ids_are_paths_and_no_two_are_the_same() -> None:
    ids = labels.Ids()
    paths = [["a"], ["a", "b"], ["a__b"], ["a-b"], ["a_b"], ["state"], ["__proto__"], ["Note"]]

    given_ids = [ids.give(path) for path in paths]

    assert given_ids == [
        *("a", "a__b", "a__b_2", "a_b", "a_b_2"),
        *("s_state", "s___proto__", "s_Note"),
    ]


@given(
    st.lists(st.lists(st.from_regex(r"[a-zA-Z0-9_-]{1,5}", fullmatch=True), min_size=1, max_size=3))
)
def test_an_id_is_legal_and_unique(paths: list[list[str]]) -> None:
    ids = labels.Ids()
    found = [ids.give(path) for path in paths]

    assert len(set(found)) == len(found)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_]*", one) for one in found)
