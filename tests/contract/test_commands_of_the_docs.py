"""Each command line that the docs show is one that `jr2` understands, or a script that is there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from jr2_cli import application, verbs

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
_BLOCK: Final = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
_SCRIPT: Final = re.compile(r"scripts/[\w.-]+")


def lines(page: Path) -> Iterator[str]:
    for block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            yield from re.split(r" && | \| ", line)


def calls() -> list[tuple[str, str]]:
    return [
        (page.name, line.strip())
        for page in PAGES
        for line in lines(page)
        if line.strip().startswith("jr2 ")
    ]


@pytest.mark.parametrize(("page", "line"), calls())
def test_a_call_of_a_page_is_understood(page: str, line: str) -> None:
    # `<namespace>` stands for a value, and a shell would read it as a file.
    _, *arguments = shlex.split(re.sub(r"<([\w -]+)>", "value", line), comments=True)

    assert verbs.find(arguments[0]) or arguments[0].startswith("-"), page
    if arguments[0] != "--help":
        application.build().parse_args(arguments, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_script_of_a_page_is_there(page: Path) -> None:
    for line in lines(page):
        for script in _SCRIPT.findall(line):
            assert (ROOT / script).is_file(), script


def test_the_pages_show_many_calls() -> None:
    assert len({line for _, line in calls()}) > 40
