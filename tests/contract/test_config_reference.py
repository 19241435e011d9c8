"""The reference of `jr2_config.py` is what the models say, and the guide names every field."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any, Final

import pytest

from jr2 import config

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "render_config_reference.py"))


def test_the_page_is_current(script: dict[str, Any]) -> None:
    page = (DOCS / "config-reference.md").read_text(encoding="utf-8")

    assert script["render"]() == page, "run scripts/render_config_reference.py"


def test_every_class_of_the_config_is_on_the_page(script: dict[str, Any]) -> None:
    told = {kind.__name__ for kind in script["reached"]()}

    assert told == set(config.__all__) - {"ConfigInvalid", "name_problem"}


def test_the_guide_names_fields_that_exist_and_every_one_of_the_config(
    script: dict[str, Any],
) -> None:
    guide = (DOCS / "config.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]+`) \|", guide, re.M)
    named = {path for row in rows for path in re.findall(r"`([\w.\[\]]+)`", row)}
    classes = script["reached"]()
    exist = set(config.Config.model_fields) | {
        f"{path}.{field}"
        for kind, paths in classes.items()
        for path in paths
        for field in kind.model_fields
    }

    assert {path for path in named if path.removesuffix("[]") not in exist} == set()
    assert set(config.Config.model_fields) <= {re.split(r"[.\[]", path)[0] for path in named}
