"""The names of `jr2`: each one is there, and none is loaded before it is used."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import jr2
from jr2.parts.opening import Open


def test_each_name_is_there() -> None:
    def told(value: Any) -> str:
        return value.name if isinstance(value, Open) else str(value.__name__)

    assert [name for name in jr2.__all__ if told(getattr(jr2, name)) != name] == []
    assert set(jr2.__all__) <= set(dir(jr2))


def test_another_name_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'jr2' has no attribute 'Sandwich'"):
        jr2.Sandwich  # noqa: B018


def test_the_names_of_objects_load_no_model() -> None:
    script = "import sys, jr2.names, jr2.errors; print('pydantic' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert done.stdout == "False\n"
