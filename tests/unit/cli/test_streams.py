"""Streams that the caller closed, or that take nothing more, through the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jr2_cli import verbs
from tests.unit.cli.conftest import Said, clean_environment, run_status
from tests.waiting import LIMIT

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FarOrchestrator


JR2 = (sys.executable, "-m", "jr2_cli")


def redirected(
    redirection: str, *arguments: str, env: dict[str, str], cwd: Path, home: Path
) -> Said:
    """Run `jr2` as a shell does that redirects its streams."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", *JR2, *arguments],
        cwd=cwd,
        env={**clean_environment(home), **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("redirection", [">&-", "<&- >&-", "<&-"])
def test_a_closed_stream_takes_nothing_and_hurts_nothing(
    far: FarOrchestrator, at: dict[str, str], tmp_path: Path, redirection: str
) -> None:
    said = redirected(redirection, "runs", env=at, cwd=tmp_path, home=tmp_path)

    assert (said.code, said.stderr) == (0, f"→ {far.url}\n")
    assert ("" if ">" in redirection else "[") == said.stdout[:1]


def test_a_closed_stderr_leaves_the_result(
    far: FarOrchestrator, at: dict[str, str], tmp_path: Path
) -> None:
    said = redirected("2>&-", "runs", env=at, cwd=tmp_path, home=tmp_path)

    assert said.code == 0
    assert run_status()["runId"] in said.stdout


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_the_own_command_of_an_instance_runs_with_a_closed_stream(
    tmp_path: Path, redirection: str
) -> None:
    (tmp_path / "jr2_config.py").write_text("")
    command = tmp_path / ".venv" / "bin" / "jr2"
    command.parent.mkdir(parents=True)
    command.write_text('#!/bin/sh\nls -l /proc/self/fd >"$0.saw"\nexit 7\n')
    command.chmod(0o755)

    said = redirected(redirection, "runs", env={}, cwd=tmp_path, home=tmp_path)

    assert (said.code, said.stderr) == (7, "")
    saw = (command.parent / "jr2.saw").read_text()
    assert all(f" {number} -> " in saw for number in (0, 1, 2))


FULL = "error: cannot write to stdout: No space left on device\n"


def test_a_result_that_cannot_be_written_is_one_line(
    far: FarOrchestrator, at: dict[str, str], tmp_path: Path
) -> None:
    said = redirected(">/dev/full", "runs", env=at, cwd=tmp_path, home=tmp_path)

    assert (said.code, said.stderr) == (1, f"→ {far.url}\n{FULL}")


@pytest.mark.parametrize("verb", ["up", "check", "down"])
def test_events_that_cannot_be_written_are_one_line(tmp_path: Path, verb: str) -> None:
    said = redirected(">/dev/full", verb, "--json", env={}, cwd=tmp_path, home=tmp_path)

    assert (said.code, said.stderr) == (1, FULL)


def test_a_stdout_that_is_open_for_reading_only_is_one_line(
    far: FarOrchestrator, at: dict[str, str], tmp_path: Path
) -> None:
    said = redirected("1</dev/null", "runs", env=at, cwd=tmp_path, home=tmp_path)

    assert said.code == 1
    assert said.stderr == f"→ {far.url}\nerror: cannot write to stdout: Bad file descriptor\n"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["runs"], ["frob"], ["run", "--frob"]]
)
def test_lines_that_cannot_be_written_fail_the_command(
    at: dict[str, str], tmp_path: Path, arguments: list[str]
) -> None:
    said = redirected("2>/dev/full", *arguments, env=at, cwd=tmp_path, home=tmp_path)

    assert (said.code, said.stdout, said.stderr) == (1, "", "")


def test_both_streams_that_cannot_be_written_fail_the_command(
    at: dict[str, str], tmp_path: Path
) -> None:
    said = redirected(">/dev/full 2>&1", "runs", env=at, cwd=tmp_path, home=tmp_path)

    assert said.code == 1


def test_help_with_a_closed_stdout_is_on_stderr(tmp_path: Path) -> None:
    said = redirected(">&-", "--help", env={}, cwd=tmp_path, home=tmp_path)

    assert (said.code, said.stderr) == (0, f"{verbs.usage()}\n")
