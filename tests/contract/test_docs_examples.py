"""The examples of the docs: each Machine in them loads, checks and is drawn as the page says."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jr2 import charts, walk

DOCS = Path(__file__).parents[2] / "docs"
NAMED = re.compile(r"# workflows/(\S+)\n")
"""A block that says which file it is; the others of the page import it by that name."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return [code for found, code in BLOCK.findall(text) if found == language]


PAGES = sorted(path.name for path in DOCS.glob("*.md") if "```python" in path.read_text())


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An Instance folder; what the walk left in this process is taken away after."""
    modules, path, hooks = set(sys.modules), list(sys.path), list(sys.path_hooks)
    (tmp_path / "workflows").mkdir()
    yield tmp_path
    for name in set(sys.modules) - modules:
        if name.split(".")[0] in (walk.modules.PACKAGE, walk.modules.CONFIG_MODULE):
            del sys.modules[name]
    sys.path[:], sys.path_hooks[:] = path, hooks
    walk.modules._opened.clear()


def load(folder: Path, sources: list[str]) -> walk.LoadedWorkflows:
    for number, source in enumerate(sources):
        named = NAMED.match(source)
        file = named[1] if named else f"example-{number}.py"
        (folder / "workflows" / file).write_text(source, encoding="utf-8")
    return walk.load_workflows(folder)


@pytest.mark.parametrize("page", PAGES)
def test_each_machine_of_a_page_loads(folder: Path, page: str) -> None:
    python = blocks(page, "python")
    machines = [code for code in python if re.search(r"^machine = ", code, re.M)]

    loaded = load(folder, [code for code in python if code in machines or NAMED.match(code)])

    assert [problem.message for problem in loaded.problems] == []
    assert len(loaded.workflows) == len(machines)


@pytest.mark.parametrize("page", PAGES)
def test_each_python_of_a_page_is_python(page: str) -> None:
    for code in blocks(page, "python"):
        compile(code, page, "exec")


def test_the_chart_of_the_page_is_the_one_of_its_machine(folder: Path) -> None:
    (example,) = (code for code in blocks("machines.md", "python") if "review.gate(" in code)
    (shown,) = blocks("charts.md", "mermaid")

    loaded = load(folder, [example])

    assert charts.difference(shown, charts.draw(loaded.workflows[0].machine.chart)) is None
