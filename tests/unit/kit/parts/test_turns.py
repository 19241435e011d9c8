"""A Turn has five fields and no more, and crosses a process as JSON."""

from __future__ import annotations

import dataclasses
from pathlib import PurePosixPath
from typing import Any

import pytest

from jr2 import Turn
from jr2.parts.turns import decode_turn, encode_turn

FULL = Turn(
    prompt="Fix it.",
    cwd=PurePosixPath("/work/app/main"),
    continue_=True,
    model="local/qwen/7b",
    thinking_level="high",
)


def test_a_turn_has_exactly_five_fields_and_is_frozen() -> None:
    assert [field.name for field in dataclasses.fields(Turn)] == [
        "prompt",
        "cwd",
        "continue_",
        "model",
        "thinking_level",
    ]
    with pytest.raises(dataclasses.FrozenInstanceError):
        FULL.prompt = "other"  # type: ignore[misc]


@pytest.mark.parametrize("turn", [FULL, Turn(prompt="x"), Turn(prompt="x", cwd="/a")])
def test_a_turn_is_the_same_after_a_trip_through_json(turn: Turn) -> None:
    told = encode_turn("coder", turn)

    assert encode_turn("coder", decode_turn(told)) == told


def test_a_turn_on_the_wire() -> None:
    assert encode_turn("coder", FULL) == {
        "prompt": "Fix it.",
        "cwd": "/work/app/main",
        "continue": True,
        "model": "local/qwen/7b",
        "thinking_level": "high",
    }


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (
            {"prompt": "x", "session": 1, "tools": []},
            TypeError,
            "a Turn has no field 'session', 'tools' (its fields: prompt, cwd, continue_, model, "
            "thinking_level)",
        ),
        ({"prompt": " "}, ValueError, "a Turn needs a prompt"),
        (
            {"prompt": "x", "cwd": "work/app"},
            ValueError,
            "the cwd 'work/app' of a Turn is not an absolute path",
        ),
        (
            {"prompt": "x", "continue_": 1},
            ValueError,
            "continue_ of a Turn is 1, and not True or False",
        ),
        (
            {"prompt": "x", "model": "qwen"},
            ValueError,
            "the model 'qwen' of a Turn is not \"<provider>/<model id>\"",
        ),
        (
            {"prompt": "x", "thinking_level": "huge"},
            ValueError,
            "a Turn has the thinking_level 'huge'",
        ),
    ],
)
def test_a_turn_that_is_none_is_refused(
    given: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as refused:
        Turn(**given)

    assert str(refused.value) == text


def test_a_turn_takes_no_field_by_position() -> None:
    with pytest.raises(TypeError, match="a Turn has only named fields"):
        Turn("x")  # type: ignore[call-arg]


def test_what_is_no_turn_names_the_agent_and_the_whole_surface() -> None:
    with pytest.raises(ValueError, match="the Agent") as refused:
        encode_turn("coder", {"prompt": "x"})

    assert str(refused.value) == (
        'the Agent "coder" is given an object of type dict, and not a Turn(prompt, cwd, continue_, '
        "model, thinking_level)"
    )


def test_a_turn_that_is_no_text_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        encode_turn("coder", Turn(prompt="\ud800"))


def test_what_is_no_json_of_a_turn_is_refused() -> None:
    with pytest.raises(ValueError, match="a Turn is a JSON object"):
        decode_turn([])
