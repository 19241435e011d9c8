"""Effects: the rules on each kind, where each one runs, and what is Open of it."""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import Any

import pytest

from jr2 import OPEN, Command, Dispatch, Http, HttpFile, Push, Target
from jr2.parts.effect_rules import problems
from jr2.parts.effects import EffectDefinition, open_fields, place_of, secret_of
from jr2.parts.opening import Open, is_open

GOOD: list[tuple[EffectDefinition[Any, Any], str, str | None]] = [
    (Command(argv=["uv", "run", "pytest"], timeout=timedelta(minutes=20)), "harness", None),
    (Command(argv=["gh"], secret="GH_TOKEN"), "sandbox-effector", "GH_TOKEN"),
    (Command(argv=OPEN, secret=OPEN), "sandbox-effector", None),
    (Http(url="https://example.com/x", secret="HOOK"), "instance-effector", "HOOK"),
    (Http(method="GET", url="http://svc:8080", headers={"x-a": "b"}), "instance-effector", None),
    (HttpFile(method="PUT", url=OPEN), "sandbox-effector", None),
    (Push(repo="app", force=True), "sandbox-effector", None),
    (Dispatch(workflow="deploy"), "orchestrator", None),
    (
        Dispatch(workflow="deploy", target=Target(url="https://other", secret="OTHER")),
        "instance-effector",
        "OTHER",
    ),
]


@pytest.mark.parametrize(("definition", "place", "secret"), GOOD)
def test_each_kind_runs_in_its_place(
    definition: EffectDefinition[Any, Any], place: str, secret: str | None
) -> None:
    assert problems("e", definition) == []
    assert place_of(definition) == place
    assert secret_of(definition) == secret


METHODS = '"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"'


@pytest.mark.parametrize(
    ("definition", "found"),
    [
        (
            Command(argv="uv run"),
            ["argv='uv run': no shell reads it, so give a list of texts"],
        ),
        (Command(argv=[]), ["an argv that names no program"]),
        (Command(argv=["", "x"]), ["an argv that names no program"]),
        (Command(argv=["x", 1]), ["argv=('x', 1), which is no list of texts"]),  # type: ignore[list-item]
        (
            Command(argv=["x"], secret="ghp_value", timeout=timedelta(0)),
            [
                "a secret that is no name of a secret of the config: a name has capitals, digits "
                "and _",
                "timeout=datetime.timedelta(0), which is no timedelta above zero",
            ],
        ),
        (
            Http(url="ftp://x", method="SEND", headers={"a b": "c", "d": 1}),  # type: ignore[arg-type,dict-item]
            [
                f"method='SEND', which is not one of {METHODS}",
                'a url that is not "https://<host>/<path>"',
                "the header 'a b', which is no name of a header",
                'the header "d", whose value is no text',
            ],
        ),
        (Http(url="https://h:port/"), ["a url that cannot be read"]),
        (Http(url=7), ["a url that cannot be read"]),  # type: ignore[arg-type]
        (
            HttpFile(url="https://u:hunter2@h/", headers=[]),  # type: ignore[arg-type]
            [
                "a url with a user in it: a credential is an Effect secret",
                "headers=[], which is no dict",
            ],
        ),
        (
            Push(repo="a/b", force="yes"),  # type: ignore[arg-type]
            [
                "a Repo Slot 'a/b': it becomes the directory /work/<slot>, so it starts with a "
                "letter and has letters, digits, `.`, `_` and `-` only",
                "force='yes', which is not True or False",
            ],
        ),
        (
            Dispatch(workflow="a b", target=Target(url="other", secret="x")),
            [
                "workflow='a b', which is no name of a Workflow",
                'a target url that is not "https://<host>/<path>"',
                "a secret that is no name of a secret of the config: a name has capitals, digits "
                "and _",
            ],
        ),
        (
            Dispatch(workflow="deploy", target="https://other"),  # type: ignore[arg-type]
            ["target='https://other': give a Target(url=…, secret=…)"],
        ),
        (
            Http(
                url="https://h/a b",
                headers={
                    "a": "b\r\nc: d",
                    "e": " f",
                    "g": "é",
                    "Authorization": "Bearer x",
                    "Host": "h",
                },
            ),
            [
                "a url with a space or another character that a url writes as %xx",
                *(
                    f'the header "{name}", whose value holds a character that a header cannot '
                    "carry, or a space at its start or end"
                    for name in "aeg"
                ),
                'the header "Authorization": a credential is an Effect secret',
                'the header "Host", which the request itself decides',
            ],
        ),
        (
            Command(argv=["x", "\ud800"]),
            ["an argv with half of a surrogate pair, which is no text"],
        ),
        (3, ["3: give a Command, an Http, an HttpFile, a Push or a Dispatch"]),
    ],
)
def test_every_broken_rule_is_said(definition: Any, found: list[str]) -> None:
    assert problems("e", definition) == [f'has an Effect "e" with {one}' for one in found]


@pytest.mark.parametrize(
    ("definition", "fields"),
    [
        (Command(argv=OPEN, secret=OPEN), ("argv", "secret")),
        (Http(url=OPEN, secret=OPEN), ("url", "secret")),
        (HttpFile(url="https://h", secret=OPEN), ("secret",)),
        (Push(repo="app"), ()),
    ],
)
def test_open_fields_are_told_in_the_order_of_the_refusal(
    definition: EffectDefinition[Any, Any], fields: tuple[str, ...]
) -> None:
    assert open_fields(definition) == fields


def test_a_definition_does_not_change_with_what_it_was_made_of() -> None:
    argv, headers = ["make"], {"x-a": "b"}
    command, request = Command(argv=argv), Http(url="https://h", headers=headers)

    argv.append("clean")
    headers["x-a"] = "c"

    assert command == Command(argv=["make"])
    assert request == Http(url="https://h", headers={"x-a": "b"})


def test_open_is_open_in_a_second_copy_of_the_kit_too() -> None:
    class Copied(enum.Enum):
        OPEN = "OPEN"

    Copied.__name__ = "Open"

    assert is_open(OPEN)
    assert is_open(Copied.OPEN)
    assert not is_open("OPEN")
    assert not is_open(None)
    assert repr(Open.OPEN) == "OPEN"
