"""The examples of the docs: each Machine in them loads, checks and is drawn as the page says."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jr2 import charts, host_wire, walk

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


@pytest.mark.parametrize(
    ("page", "machine"), [("charts.md", 'Machine("review"'), ("machines.md", 'Machine("release"')]
)
def test_the_chart_of_a_page_is_the_one_of_its_machine(
    folder: Path, page: str, machine: str
) -> None:
    (example,) = (code for code in blocks("machines.md", "python") if machine in code)
    (shown,) = blocks(page, "mermaid")

    loaded = load(folder, [example])

    assert charts.difference(shown, charts.draw(loaded.workflows[0].machine.chart)) is None


def test_the_parallel_machine_of_the_page_does_what_it_says(folder: Path) -> None:
    (example,) = (code for code in blocks("machines.md", "python") if 'Machine("release"' in code)
    machine = load(folder, [example]).workflows[0].machine
    snapshot = machine.start(None, "r").snapshot

    def send(gate: str, name: str, **payload: str) -> None:
        nonlocal snapshot
        event = host_wire.GateEvent(gate=gate, name=name, payload=dict(payload))
        snapshot = machine.step(snapshot, event).snapshot

    send("checking.lint.linting", "lint_passed")
    send("checking.test.testing", "pause")
    assert machine.view(snapshot).value == "paused"
    send("paused", "resume")
    assert machine.view(snapshot).value == {"checking": {"lint": "linted", "test": "testing"}}
    send("checking.test.testing", "tests_passed")
    assert machine.view(snapshot).value == "signing"
    send("signature.waiting", "sign", by="")
    assert machine.view(snapshot).status == "active"
    send("signature.waiting", "sign", by="ann")
    assert (machine.view(snapshot).status, machine.view(snapshot).output) == ("done", "ann")
