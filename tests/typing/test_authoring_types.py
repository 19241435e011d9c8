"""The types as an author meets them, under each checker that an Instance may choose.

A file `*_good.py` has no error. In a file `*_bad.py` each line that ends in `# refused` has one,
and no other line has: a misspelt name of the authoring surface is seen, and nothing right is
refused.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jr2.errors import Refusal
from jr2_infra import typecheck

if TYPE_CHECKING:
    from tests.typing.conftest import Instance

FILES = sorted(
    file for file in Path(__file__).parent.glob("*.py") if file.stem.endswith(("_good", "_bad"))
)
SETTINGS = {"mypy": '[tool.mypy]\nstrict = true\nplugins = ["pydantic.mypy"]\n'}


class Silent:
    """A reporter whose lines nobody reads."""

    def line(self, text: str, *, code: str = "") -> None: ...

    def warning(self, text: str, *, code: str = "") -> None: ...

    def progress(self, text: str | None) -> None: ...

    def confirm(self, question: str) -> bool:
        raise AssertionError(question)


@pytest.mark.parametrize("checker", typecheck.CHECKERS)
def test_each_mistake_is_seen_and_nothing_else(instance: Instance, checker: str) -> None:
    root = instance(
        checker, {file.name: file.read_text() for file in FILES}, SETTINGS.get(checker, "")
    )
    refused = {
        (file.name, number)
        for file in FILES
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if line.endswith("# refused")
    }

    with pytest.raises(Refusal) as raised:
        typecheck.typecheck(root, Silent())

    said = [line for line in raised.value.message.splitlines() if "note:" not in line]
    found = {
        (place[1], int(place[2])) for line in said if (place := re.search(r"(\w+\.py):(\d+)", line))
    }
    assert len(refused) > 25
    assert found == refused, raised.value.message


def test_only_files_with_mistakes_have_marks() -> None:
    assert [file.name for file in FILES if "# refused" in file.read_text()] == [
        file.name for file in FILES if file.stem.endswith("_bad")
    ]
