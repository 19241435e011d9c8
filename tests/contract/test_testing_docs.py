"""The examples of docs/test-a-machine.md are tests themselves: each is run as it stands."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import jr2.testing

PAGE = (Path(__file__).parents[2] / "docs" / "test-a-machine.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.mark.parametrize("number", range(3))
def test_an_example_runs_and_its_tests_pass(number: int) -> None:
    names: dict[str, Any] = {"__name__": f"example_{number}"}
    exec(compile(EXAMPLES[number], f"example {number}", "exec"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert len(tests) == 2
    for each in tests:
        each()


def test_the_example_of_the_module_runs() -> None:
    told = inspect.cleandoc(jr2.testing.__doc__ or "")
    code = told.split("no waiting.\n\n")[1].split("\n\nA run on the desk")[0]
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(inspect.cleandoc(code), "module", "exec"), names)
    assert names["run"].value == "shipped"


def test_the_table_names_each_attribute_that_a_run_has() -> None:
    rows = re.findall(r"^\| (`.+?) \|", PAGE.split("What a run on the desk shows")[1], re.M)
    named = {name for row in rows for name in re.findall(r"`(\w+)(?:\(\))?`", row)}
    shown = {
        name
        for name, value in vars(jr2.testing.Run).items()
        if isinstance(value, property) and not name.startswith("_")
    }
    assert named == {*shown, "meta", "allowed"}
