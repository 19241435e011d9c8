"""`jr2 init`: what it writes, what it leaves alone, and what it says."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jr2 import walk
from jr2.errors import StepFailed
from jr2_infra import agents_block
from jr2_infra.facts.kit import COMMAND_VERSION, find_checkout, running_copy
from jr2_infra.scaffold import scaffold

if TYPE_CHECKING:
    from tests.reporter import Reporter

FILES = [
    "pyproject.toml",
    "jr2_config.py",
    ".gitignore",
    "AGENTS.md",
    "workflows/ping.py",
    "images/default/Dockerfile",
]


def test_a_new_instance(tmp_path: Path, said: Reporter) -> None:
    scaffold(tmp_path / "deep" / "my-instance", None, None, said)

    root = tmp_path / "deep" / "my-instance"
    assert said.lines == [
        f"jr2 init — scaffolding my-instance in {root}",
        *(f"  create {file}" for file in FILES),
        f"next: install with `uv sync` in {root}, then `jr2 up` and `jr2 run ping`",
    ]
    found = [p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()]
    assert sorted(found) == sorted(FILES)
    assert [file for file in FILES if "@" in (root / file).read_text()] == []


def test_what_exists_is_left_alone(tmp_path: Path, said: Reporter) -> None:
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "ping.py").write_text("mine")
    (tmp_path / ".gitignore").symlink_to("nowhere")

    scaffold(tmp_path, "one", tmp_path, said)

    assert "  skip   workflows/ping.py (exists)" in said.lines
    assert "  skip   .gitignore (exists)" in said.lines
    assert (tmp_path / "workflows" / "ping.py").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()
    said.lines.clear()
    scaffold(tmp_path, "two", tmp_path, said)
    assert said.lines[1:-1] == [f"  skip   {file} (exists)" for file in FILES]
    assert "two" not in (tmp_path / "jr2_config.py").read_text()


def test_the_kit_is_pinned_at_one_exact_version(tmp_path: Path, said: Reporter) -> None:
    scaffold(tmp_path, "one", None, said)

    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())
    assert project["project"]["name"] == "one"
    assert project["project"]["dependencies"] == [f"jr2=={COMMAND_VERSION}"]
    assert project["dependency-groups"]["dev"][0] == f"jr2-cli=={COMMAND_VERSION}"
    assert project["tool"]["uv"] == {"package": False}
    assert project["tool"]["jr2"] == {"typecheck": "mypy"}
    assert project["tool"]["mypy"]["python_version"] == "3.11"


def test_from_a_checkout_the_kit_is_the_checkouts(tmp_path: Path, said: Reporter) -> None:
    checkout = Path('/home/me/my "jr2" é')

    scaffold(tmp_path, "one", checkout, said)

    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())
    assert project["tool"]["uv"]["sources"] == {
        "jr2": {"path": f"{checkout}/runtime/kit", "editable": True},
        "jr2-cli": {"path": f"{checkout}/cli", "editable": True},
        "jr2-infra": {"path": f"{checkout}/infra", "editable": True},
        "jr2-machines": {"path": f"{checkout}/runtime/machines", "editable": True},
    }
    assert said.lines[2] == (
        f"  pinned to the checkout {checkout} by [tool.uv.sources]: jr2 {COMMAND_VERSION} comes "
        "from there"
    )


def test_a_checkout_holds_what_is_pointed_at() -> None:
    checkout = find_checkout(running_copy().path)

    assert checkout is not None
    for place, name in (
        ("runtime/kit", "jr2"),
        ("cli", "jr2-cli"),
        ("infra", "jr2-infra"),
        ("runtime/machines", "jr2-machines"),
    ):
        project = tomllib.loads((checkout / place / "pyproject.toml").read_text())
        assert project["project"]["name"] == name


def test_the_config_and_the_workflow_load(tmp_path: Path, said: Reporter) -> None:
    scaffold(tmp_path, "my-instance", None, said)
    before = list(sys.path), list(sys.path_hooks)

    config = walk.load_config(tmp_path)
    workflows = walk.report_workflows(tmp_path)

    sys.path[:], sys.path_hooks[:] = before
    walk.modules._opened.clear()
    assert config.config is not None
    assert config.config.name == "my-instance"
    assert [entry.match for entry in config.config.git.credentials] == ["*"]
    assert workflows.problems == []
    (ping,) = workflows.workflows
    assert (ping.name, ping.machine_id) == ("ping", "ping")
    assert ping.input is not None
    message = ping.input["properties"]
    assert isinstance(message, dict)
    assert message["message"] == {
        "default": "ping",
        "description": "What to answer.",
        "title": "Message",
        "type": "string",
    }


def test_the_markers_are_a_pair(tmp_path: Path, said: Reporter) -> None:
    scaffold(tmp_path, "one", None, said)

    text = (tmp_path / "AGENTS.md").read_text()
    assert agents_block.pair_problem(text) is None
    assert agents_block.START in text


def test_what_must_not_be_committed_is_ignored(tmp_path: Path, said: Reporter) -> None:
    scaffold(tmp_path, "one", None, said)

    ignored = (tmp_path / ".gitignore").read_text().split()
    assert ignored == [".jr2/", ".venv/", "__pycache__/", ".mypy_cache/", ".env"]


def test_a_project_never_depends_on_itself(tmp_path: Path, said: Reporter) -> None:
    scaffold(tmp_path, "jr2", None, said)

    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())
    assert project["project"]["name"] == "jr2-instance"
    assert 'name="jr2",' in (tmp_path / "jr2_config.py").read_text()


@pytest.mark.parametrize(("name", "folder"), [("café", "x"), (None, "My_App"), ("", "x")])
def test_a_name_that_no_instance_can_have(
    tmp_path: Path, said: Reporter, name: str | None, folder: str
) -> None:
    with pytest.raises(StepFailed) as raised:
        scaffold(tmp_path / folder, name, None, said)

    assert raised.value.message.endswith(
        f" — give it a name: jr2 init {tmp_path / folder} --name <name>"
    )
    assert " cannot name an Instance: " in raised.value.message
    assert not (tmp_path / folder).exists()
    assert said.lines == []


def test_a_file_in_the_place_of_a_folder(tmp_path: Path, said: Reporter) -> None:
    (tmp_path / "workflows").write_text("")

    with pytest.raises(StepFailed) as raised:
        scaffold(tmp_path, "one", None, said)

    assert raised.value.message == (
        f"cannot write {tmp_path}/workflows/ping.py: {tmp_path}/workflows is no folder"
    )
