"""What a Repo Slot is called, and what it takes."""

from __future__ import annotations

from typing import Any

import pytest

from jr2 import OPEN, Binding
from jr2.parts.repos import bound, slot_problem, value_problem


@pytest.mark.parametrize("slot", ["app", "A", "a.b-c_d9"])
def test_a_slot_is_a_directory_name(slot: str) -> None:
    assert slot_problem(slot) is None


@pytest.mark.parametrize("slot", ["", "1app", "-a", "a/b", "..", "ä", "a b", 3])
def test_what_is_no_directory_name_is_refused(slot: Any) -> None:
    assert slot_problem(slot) == (
        f"a Repo Slot {slot!r}: it becomes the directory /work/<slot>, so it starts with a letter "
        "and has letters, digits, `.`, `_` and `-` only"
    )


def test_a_name_that_no_directory_can_have_is_refused() -> None:
    assert slot_problem("a" * 255) is None
    assert slot_problem("a" * 256) == (
        "a Repo Slot of 256 characters: it becomes the directory /work/<slot>, so it has at most 255"
    )


@pytest.mark.parametrize(
    "value",
    [
        "https://github.com/you/app.git",
        "git@github.com:you/app.git",
        Binding("https://github.com/you/app.git", "main"),
        OPEN,
        lambda door: door,
    ],
)
def test_a_slot_takes_each_form(value: Any) -> None:
    assert value_problem("app", value) is None


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (
            None,
            'the Repo Slot "app" with an object of type NoneType: give a url, a '
            "Binding, OPEN, or a function of the door",
        ),
        ("", 'the Repo Slot "app" with an empty url'),
        (Binding("https://github.com/you/app", " "), 'the Repo Slot "app" with an empty ref'),
    ],
)
def test_what_cannot_be_cloned_is_refused(value: Any, problem: str) -> None:
    assert value_problem("app", value) == problem


def test_a_url_that_is_none_says_why_and_never_tells_a_password() -> None:
    assert (value_problem("app", "app.git") or "").startswith(
        'the Repo Slot "app" with a url that is none: '
    )
    assert "hunter2" not in (value_problem("app", "https://u:hunter2@github.com/y/a") or "")


def test_only_a_bound_slot_is_known_without_a_run() -> None:
    assert bound("https://github.com/you/app") == Binding("https://github.com/you/app")
    assert bound(Binding("u", "main")) == Binding("u", "main")
    assert bound(OPEN) is None
    assert bound(lambda door: door) is None
