"""Chart files: what `jr2 check` refuses, with its command, and what `jr2 chart` writes.

The Workflows are loaded by a process, as often as a test edits one. Tests that only change Chart
files share what one such process said.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jr2.errors import Jr2Error, StepFailed, Usage
from jr2_infra import charts, check
from tests.reporter import Reporter
from tests.unit.infra.conftest import make_environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from jr2_infra.check import OpenInstance

PROJECT = '[tool.jr2]\ntypecheck = "ty"\n'
WORKFLOW = """\
from jr2 import Context, Machine

class Ctx(Context):
    pass

m = Machine("one", context=Ctx, start=lambda i: Ctx())
m.state("waiting", initial=True)
machine = m.build()
"""


def make(root: Path) -> Path:
    """Make an Instance with two Workflows and a checker that finds nothing."""
    (root / "workflows").mkdir(parents=True)
    make_environment(root)
    (root / "jr2_config.py").write_text("from jr2 import Config\nconfig = Config()\n")
    (root / "pyproject.toml").write_text(PROJECT)
    for name in ("one", "two"):
        (root / "workflows" / f"{name}.py").write_text(WORKFLOW)
    program = root / ".venv" / "bin" / "ty"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path / "my-instance")


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> OpenInstance:
    """What the process said of a folder like `root`."""
    root = make(tmp_path_factory.mktemp("charts") / "my-instance")
    return check.open_instance(root, Reporter(warns=True), agents=False)


@pytest.fixture
def opened(once: OpenInstance, root: Path) -> OpenInstance:
    """`root`, whose Workflows nobody edits."""
    return replace(once, root=root)


def refused(root: Path, said: Reporter) -> str:
    with pytest.raises(Jr2Error) as raised:
        check.check(root, said)
    return raised.value.printed


def refused_chart(opened: OpenInstance, said: Reporter) -> str:
    with pytest.raises(Jr2Error) as raised:
        check.check_machines(opened, said)
    return raised.value.printed


def write(opened: OpenInstance, said: Reporter, *workflows: str) -> None:
    """Write Charts as `jr2 chart` does once it has loaded the Workflows."""
    found = {one.name: one.drawing for one in opened.read.workflows}
    charts.write(opened.root, {name: found[name] for name in workflows or found}, said)


def test_what_chart_writes_is_what_check_takes(root: Path, said: Reporter) -> None:
    check.check(root, said)
    said.lines.clear()

    check.write_charts(root, (), said)

    assert said.lines == ["charts/one.mmd: written", "charts/two.mmd: written"]
    assert (
        (root / "charts" / "one.mmd")
        .read_text()
        .endswith('stateDiagram-v2\n    [*] --> waiting\n    state "waiting" as waiting\n')
    )
    check.check(root, said)
    assert sorted(os.listdir(root / "charts")) == ["one.mmd", "two.mmd"]


def test_what_a_person_added_stays(root: Path, opened: OpenInstance, said: Reporter) -> None:
    write(opened, said, "one")
    chart = root / "charts" / "one.mmd"
    dressed = chart.read_text().replace("stateDiagram-v2", "stateDiagram-v2\n    direction LR")
    chart.write_text(dressed)
    said.lines.clear()

    write(opened, said, "one")

    assert said.lines == ["charts/one.mmd: unchanged"]
    assert chart.read_text() == dressed
    assert not (root / "charts" / "two.mmd").exists()


def test_each_chart_that_is_wrong_is_named_in_one_run(
    root: Path, opened: OpenInstance, said: Reporter
) -> None:
    write(opened, said)
    folder = root / "charts"
    (folder / "one.mmd").write_text("graph TD\n")
    (folder / "two.mmd").write_text((folder / "two.mmd").read_text().replace("waiting", "wating"))
    (folder / "gone away.mmd").write_text("stateDiagram-v2\n")
    (folder / "README.md").write_text("no Chart")
    (folder / ".one.mmd").write_text("of an editor")

    assert refused_chart(opened, said) == (
        "refusing: charts/gone away.mmd names no Workflow (this folder has one, two) — name it "
        "like the file of a Workflow, or remove it: `rm 'charts/gone away.mmd'`\n"
        'refusing: charts/one.mmd does not parse: line 1 is not "stateDiagram-v2", with which a '
        "Chart starts — `jr2 chart one` writes it anew\n"
        'refusing: charts/two.mmd no longer matches the Machine of workflow "two": it lacks '
        '"[*] --> waiting" — `jr2 chart two` draws it again'
    )


def test_the_command_that_is_given_mends_it(root: Path, said: Reporter) -> None:
    check.write_charts(root, (), said)
    workflow = root / "workflows" / "two.py"
    workflow.write_text(WORKFLOW.replace("waiting", "resting"))
    assert refused(root, said).endswith("`jr2 chart two` draws it again")

    check.write_charts(root, ("two",), said)

    check.check(root, said)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"stateDiagram-v2\n\xff", "it is no UTF-8"),
        (b"", "it is empty"),
        (b"x" * (4 * 1024 * 1024 + 1), "it has more than 4194304 bytes"),
    ],
)
def test_a_file_that_is_no_text(
    root: Path, opened: OpenInstance, said: Reporter, data: bytes, why: str
) -> None:
    (root / "charts").mkdir()
    (root / "charts" / "one.mmd").write_bytes(data)

    assert refused_chart(opened, said) == (
        f"refusing: charts/one.mmd does not parse: {why} — `jr2 chart one` writes it anew"
    )


def test_a_pipe_and_a_link_to_nothing_are_no_charts(
    root: Path, opened: OpenInstance, said: Reporter
) -> None:
    (root / "charts").mkdir()
    os.mkfifo(root / "charts" / "one.mmd")
    (root / "charts" / "two.mmd").symlink_to("nothing")

    assert refused_chart(opened, said).splitlines() == [
        f"refusing: charts/{name}.mmd does not parse: it is no file — `jr2 chart {name}` writes it "
        "anew"
        for name in ("one", "two")
    ]
    write(opened, said)
    check.check_machines(opened, said)


def test_a_workflow_that_is_not_there(root: Path, said: Reporter) -> None:
    with pytest.raises(Usage) as raised:
        check.write_charts(root, ("one", "three"), said)

    assert str(raised.value) == 'there is no workflow "three" (this folder has one, two)'
    assert not (root / "charts").exists()


def test_nothing_is_written_when_a_workflow_does_not_load(root: Path, said: Reporter) -> None:
    (root / "workflows" / "two.py").write_text("1 / 0\n")

    with pytest.raises(StepFailed) as raised:
        check.write_charts(root, (), said)

    assert raised.value.printed.startswith('error: workflow "two": workflows/two.py did not load')
    assert not (root / "charts").exists()


def test_a_folder_that_cannot_be_written(root: Path, opened: OpenInstance, said: Reporter) -> None:
    (root / "charts").write_text("a file")

    with pytest.raises(StepFailed) as raised:
        write(opened, said, "one")

    assert raised.value.printed == (
        f"error: charts/one.mmd cannot be written: {root / 'charts'} is no folder — move it away"
    )


@pytest.mark.parametrize("lies", [Path.touch, lambda path: path.symlink_to("gone")])
def test_what_lies_where_the_charts_belong(
    root: Path, opened: OpenInstance, said: Reporter, lies: Callable[[Path], None]
) -> None:
    lies(root / "charts")

    with pytest.raises(StepFailed) as raised:
        check.check_machines(opened, said)

    assert raised.value.printed == (
        f"error: {root / 'charts'} is no folder — `jr2 chart` writes into a folder of that name: "
        "move what is there away"
    )


def test_a_loop_of_links_is_no_folder_of_charts(
    root: Path, opened: OpenInstance, said: Reporter
) -> None:
    (root / "charts").symlink_to("charts")

    with pytest.raises(StepFailed) as raised:
        check.check_machines(opened, said)

    assert raised.value.printed == (
        f"error: {root / 'charts'} cannot be read: Too many levels of symbolic links — make it a "
        "folder that you may read"
    )
