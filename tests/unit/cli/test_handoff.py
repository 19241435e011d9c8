"""The Handoff: the global `jr2` runs the Instance's own, through the process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import jr2_cli
from jr2 import names
from jr2_cli import handoff
from tests.waiting import LIMIT

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


OWN = """#!{python}
from jr2_cli.main import main
raise SystemExit(main())
"""


@pytest.fixture
def own(root: Path) -> Path:
    """A real environment of the Instance, whose `jr2` is that of the tests."""
    environment = root / ".venv"
    venv.create(environment, symlinks=True)
    command = environment / "bin" / "jr2"
    command.write_text(OWN.format(python=command.with_name("python")))
    command.chmod(0o755)
    [site] = (environment / "lib").glob("python3*/site-packages")
    (site / "tests.pth").write_text("\n".join(path for path in sys.path if path))
    return environment


def test_an_environment_that_is_whole_runs_its_command(jr2_process: Jr2, own: Path) -> None:
    said = jr2_process("version", "--local", cwd=own.parent)

    assert (said.code, said.stderr) == (0, "")
    assert f"global:       {names.KIT_VERSION} " in said.stdout


def _take_settings(own: Path) -> None:
    (own / "pyvenv.cfg").unlink()


def _spoil_settings(own: Path) -> None:
    (own / "pyvenv.cfg").write_bytes(b"\xff")


def _take_packages(own: Path) -> None:
    [path] = own.glob("lib/python3*/site-packages/tests.pth")
    path.unlink()


def _spoil_python(own: Path) -> None:
    (own / "bin" / "python").unlink()
    (own / "bin" / "python").write_text("x")
    (own / "bin" / "python").chmod(0o755)


def _move_python(own: Path) -> None:
    """A copy of an interpreter starts, and its library is gone with the Python that it came from."""
    (own / "bin" / "python").unlink()
    (own / "bin" / "python").write_text("#!/bin/sh\necho 'Fatal: no encodings' >&2\nexit 1\n")
    (own / "bin" / "python").chmod(0o755)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (_take_settings, "finds no jr2_cli"),
        (_take_packages, "finds no jr2_cli"),
        (_spoil_settings, r"does not start \(UnicodeDecodeError: .*\)"),
        (_spoil_python, r"does not start \(Exec format error\)"),
        (_move_python, r"does not start \(Fatal: no encodings\)"),
    ],
)
def test_an_environment_that_is_broken_is_named_before_it_has_our_place(
    jr2_process: Jr2, own: Path, spoil: Callable[[Path], None], problem: str
) -> None:
    spoil(own)

    said = jr2_process("check", cwd=own.parent)

    assert (said.code, said.stdout) == (1, "")
    assert re.fullmatch(
        f"error: cannot run {own}/bin/jr2: {own}/bin/python {problem} — make {own} anew: install "
        r"the Instance's dependencies \(uv, poetry, or pdm\)\n",
        said.stderr,
    )


@pytest.mark.parametrize("lost", ["jr2", "cyclopts"])
def test_a_package_that_an_install_left_out_is_named(
    jr2_process: Jr2, own: Path, lost: str
) -> None:
    [site] = (own / "lib").glob("python3*/site-packages")
    (site / "lost.pth").write_text(f"import sys; sys.modules[{lost!r}] = None\n")

    said = jr2_process("check", cwd=own.parent)

    assert (said.code, said.stdout) == (1, "")
    assert said.stderr == (
        f"error: {own} has no module {lost!r}, which jr2 needs — install there again: the "
        "Instance's dependencies (uv, poetry, or pdm), or `uv tool install --reinstall jr2-cli`\n"
    )


def test_an_environment_that_may_not_be_read_is_named(root: Path) -> None:
    install(root, SHOW)
    (root / ".venv" / "bin").chmod(0)
    # Root, as whom the tests may run, reads everything as long as it has these rights.
    rights = "-dac_override,-dac_read_search"
    dropped = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}"]

    said = subprocess.run(
        [*(dropped if os.getuid() == 0 else []), sys.executable, "-m", "jr2_cli", "check"],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    (root / ".venv" / "bin").chmod(0o755)

    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr == (
        f"error: cannot read {root}/.venv/bin/jr2: Permission denied — let yourself read "
        f"{root}/.venv, or make {root}/.venv anew: install the Instance's dependencies (uv, "
        "poetry, or pdm)\n"
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
