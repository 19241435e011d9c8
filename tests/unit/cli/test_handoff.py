"""The Handoff: the global `jr2` runs the Instance's own, through the process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import jr2_cli
from jr2 import names
from jr2_cli import handoff

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Jr2

SHOW = """#!/bin/sh
printf '%s\\n' "own jr2" "$JR2_HANDOFF_FROM" "$@"
exit 7
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "instance"
    (folder / "workflows").mkdir(parents=True)
    (folder / "jr2_config.py").write_text("")
    return folder


def install(root: Path, text: str) -> Path:
    command = root / ".venv" / "bin" / "jr2"
    command.parent.mkdir(parents=True)
    command.write_text(text)
    command.chmod(0o755)
    return command


def test_the_own_command_runs_with_the_same_arguments_and_its_exit_code(
    jr2_process: Jr2, root: Path
) -> None:
    install(root, SHOW)
    (root / ".env").write_text("A=1\n")

    said = jr2_process("run", "a b", "--input", "{}", cwd=root / "workflows")

    assert said.code == 7
    assert said.stderr == ""
    assert said.stdout.splitlines() == [
        "own jr2",
        f"{names.KIT_VERSION} {Path(jr2_cli.__file__).resolve().parent}",
        "run",
        "a b",
        "--input",
        "{}",
    ]


def test_usage_too_is_the_own_commands(jr2_process: Jr2, root: Path) -> None:
    install(root, SHOW)

    assert jr2_process("--help", cwd=root).stdout.splitlines()[0] == "own jr2"


def test_outside_an_instance_this_command_runs(jr2_process: Jr2, root: Path) -> None:
    install(root, SHOW)

    assert jr2_process("--help", cwd=root.parent).code == 0


def test_an_instance_that_is_not_installed_runs_this_command(jr2_process: Jr2, root: Path) -> None:
    assert jr2_process("--help", cwd=root).code == 0


def test_a_command_that_was_handed_off_to_does_not_hand_off(jr2_process: Jr2, root: Path) -> None:
    install(root, SHOW)

    said = jr2_process("--help", cwd=root, env={names.ENV_HANDOFF_FROM: "1.0.0 /global"})

    assert said.code == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#!/nowhere/python\n", "No such file or directory"),
        ("\x7fELF not really", "Exec format error"),
    ],
)
def test_an_own_command_that_does_not_start_is_named(
    jr2_process: Jr2, root: Path, text: str, reason: str
) -> None:
    command = install(root, text)

    said = jr2_process("up", cwd=root)

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr == (
        f"error: cannot run {command}: {reason} — make {root / '.venv'} anew: install the "
        "Instance's dependencies (uv, poetry, or pdm)\n"
    )


def test_the_environment_of_the_instance_itself_hands_off_to_nobody(
    root: Path, tmp_path: Path
) -> None:
    install(root, SHOW)
    other_name = tmp_path / "link"
    other_name.symlink_to(root / ".venv")

    assert handoff.own_command(root, str(root / ".venv")) is None
    assert handoff.own_command(root, str(other_name)) is None
    assert handoff.own_command(root, sys.prefix) == root / ".venv" / "bin" / "jr2"


def test_the_origin_is_taken_out_of_the_environment() -> None:
    environ = {names.ENV_HANDOFF_FROM: "1.0.0 /global", "A": "1"}

    assert handoff.take_origin(environ) == "1.0.0 /global"
    assert environ == {"A": "1"}
    assert handoff.take_origin(environ) is None
    assert names.ENV_HANDOFF_FROM not in os.environ
