"""What a step shows: the quick reader takes nothing that the strict one refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jr2_runtime.orchestrator.engine import looking

GATE = {"gate": "g", "id": "g#1", "path": ["a"], "accepts": [{"type": "go"}], "meta": None}
VIEW: dict[str, Any] = {
    "status": "active",
    "value": {"a": {}},
    "context": {"n": 1.5e3, "t": "NaN ü \u2028"},
    "output": None,
    "children": [{"id": "c"}],
    "fault": None,
    "gates": [GATE, GATE],
}
PIECES = (
    *(
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"-0",
        b"01",
        b"1.",
        b"+1",
    ),
    *(b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", b"\\u0000", b'"', b"\\", b",", b":", b"null"),
    *(b"[" * 40, b"[" * 600 + b"]" * 600, b"9" * 5000, b'{"a":1,"a":2}', b'"status":"done",'),
    *(b"\n", b"\t", b"/*", b"true", b"tru", b"\xef\xbb\xbf", b"{}", b"[]", b'"more":1,'),
)


def outcome(look: Any, shown: bytes) -> Any:
    try:
        return look(shown)
    except ValueError:
        return ValueError


def text(view: dict[str, Any], **how: Any) -> bytes:
    return json.dumps(view, **how).encode()


def test_a_view_is_read_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(looking, "_look_closely")

    assert looking.look(text(VIEW)) == (text(VIEW).decode(), "active", 2)
    plain = text(VIEW, ensure_ascii=False, separators=(",", ":"))
    assert looking.look(plain) == (plain.decode(), "active", 2)


@pytest.mark.parametrize("more", [{}, {"context": "x" * 9000}, {"value": [[]] * 200}])
def test_a_long_or_deep_view_is_read_all_the_same(more: dict[str, Any]) -> None:
    shown = text({**VIEW, **more})

    assert looking.look(shown) == (shown.decode(), "active", 2)


@pytest.mark.parametrize(
    ("shown", "why"),
    [
        (text({**VIEW, "context": float("nan")}), "not finite"),
        (text({**VIEW, "context": ["x" * 9000, float("inf")]}), "not finite"),
        (b'{"status":"active","value":1e999}', "not finite"),
        (b'{"status":"active","value":' + b"9" * 400 + b".5}", "not finite"),
        (text({**VIEW, "status": "lost"}), "status"),
        (text({**VIEW, "gates": [{**GATE, "accepts": ["go"]}]}), "accepts"),
        (text({**VIEW, "gates": [{**GATE, "path": "a"}]}), "path"),
        (text({**VIEW, "more": 1}), "more"),
        (text({**VIEW, "fault": 1}), "fault"),
        (b'{"status":"active"}', "value"),
        (b'{"status":"active","value":' + b"[" * 600 + b"]" * 600 + b"}", "recursion"),
        (b'{"status":"active","value":' + b"9" * 5000 + b"}", "number"),
        (b'{"status":"active","value":"\xff"}', "unicode"),
        (b'{"status":"active","value":"\\ud800"}', "hex escape"),
        (b"", "EOF"),
        (b"[]", "an object"),
    ],
)
def test_what_no_run_shows_is_refused_with_a_reason(shown: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        looking.look(shown)


@given(
    st.integers(0, 400),
    st.integers(0, 6),
    st.one_of(st.sampled_from(PIECES), st.binary(max_size=4), st.text(max_size=3).map(str.encode)),
)
@example(0, 0, b"\xef\xbb\xbf")
@example(100, 0, b"\\ud800")
def test_both_readers_agree_on_a_text_that_was_changed(at: int, cut: int, piece: bytes) -> None:
    whole = text(VIEW, ensure_ascii=False)
    shown = whole[:at] + piece + whole[at + cut :]

    assert outcome(looking.look, shown) == outcome(looking._look_closely, shown)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(
    st.dictionaries(st.sampled_from([*VIEW, "more"]), _JSON),
    st.dictionaries(st.sampled_from([*GATE, "more"]), _JSON),
    st.booleans(),
)
def test_both_readers_agree_on_any_values(
    view: dict[str, Any], gate: dict[str, Any], is_ascii: bool
) -> None:
    shown = text({**VIEW, "gates": [{**GATE, **gate}], **view}, ensure_ascii=is_ascii)

    assert outcome(looking.look, shown) == outcome(looking._look_closely, shown)
