"""The reference of the authoring surface is what the code says."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path
from typing import Any

import pytest

import jr2
from jr2.config_part import Part

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "render_reference.py"))


def test_the_page_is_current(script: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "authoring-reference.md").read_text(encoding="utf-8")

    assert script["render"]() == page, "run scripts/render_reference.py"


def test_every_name_of_the_authoring_surface_is_on_the_page(script: dict[str, Any]) -> None:
    told = {thing.__name__ for _, things in script["SECTIONS"] for thing in things}
    of_the_config = {
        name
        for name in jr2.__all__
        if inspect.isclass(thing := getattr(jr2, name)) and issubclass(thing, Part)
    }

    # What `docs/config.md` has, the value `OPEN`, and what the Orchestrator alone catches.
    others = {*of_the_config, "OPEN", "ConfigInvalid", "EventRefused", "InputRefused"}
    assert set(jr2.__all__) - told == others - told


def test_every_thing_on_the_page_says_what_it_is(script: dict[str, Any]) -> None:
    silent = [
        thing.__name__
        for _, things in script["SECTIONS"]
        for thing in things
        if not inspect.cleandoc(thing.__doc__ or "").strip()
    ]

    assert silent == []
