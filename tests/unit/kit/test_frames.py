"""Frames from a stream that comes in pieces of any length."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jr2 import frames

FRAMES = st.lists(
    st.tuples(st.dictionaries(st.text(max_size=5), st.integers()), st.binary(max_size=40)),
    max_size=6,
)


@given(FRAMES, st.lists(st.integers(1, 30), min_size=1, max_size=50))
def test_frames_come_out_as_they_went_in(
    sent: list[tuple[dict[str, int], bytes]], lengths: list[int]
) -> None:
    stream = b"".join(frames.encode(header, body) for header, body in sent)
    splitter = frames.Splitter()
    got: list[tuple[bytes, bytes]] = []
    while stream:
        length = lengths.pop() if lengths else len(stream)
        got += splitter.feed(stream[:length])
        stream = stream[length:]
    assert [(json.loads(header), body) for header, body in got] == sent
    assert not splitter.within


def test_a_frame_that_has_begun_is_known() -> None:
    splitter = frames.Splitter()
    assert splitter.feed(frames.encode({"a": 1}, b"body")[:-1]) == []
    assert splitter.within


def test_a_length_over_the_limit_is_refused_before_anything_is_kept_for_it() -> None:
    with pytest.raises(frames.FrameError):
        frames.Splitter().feed(b"\xff\xff\xff\xff\x00\x00\x00\x00")
