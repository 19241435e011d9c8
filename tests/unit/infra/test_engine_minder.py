"""The minder, as the process that it is."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from jr2_infra import process_table
from jr2_infra.engine import minder
from jr2_infra.engine.minded import Minded
from tests.interrupts import interrupt
from tests.waiting import LIMIT

ENV = {"PATH": os.environ["PATH"]}

FAMILY = textwrap.dedent(
    """
    import os, sys, time
    from pathlib import Path
    out = Path(sys.argv[1])
    if os.fork() == 0:
        os.setpgid(0, 0)  # as the engine does with each plugin
        if os.fork():
            (out / str(os.getpid())).touch()
            time.sleep(3600)
        (out / str(os.getpid())).touch()
        time.sleep(3600)
    (out / str(os.getpid())).touch()
    while len(list(out.iterdir())) < 3:
        time.sleep(0.01)
    print("all are here", flush=True)
    time.sleep(float(sys.argv[2]))
    sys.exit(3)
    """
)


def family(folder: Path) -> list[int]:
    """Wait for the three processes of FAMILY and return their numbers."""
    until = time.monotonic() + LIMIT
    while len(list(folder.iterdir())) < 3:
        assert time.monotonic() < until
        time.sleep(0.01)
    return [int(path.name) for path in folder.iterdir()]


def all_gone(pids: list[int], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while any(process_table.start_of(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.01)
    return not any(process_table.start_of(pid) for pid in pids)


def minded(folder: Path, seconds: float, **env: str) -> Minded:
    return Minded(
        [sys.executable, "-c", FAMILY, folder, str(seconds)], cwd=None, env={**ENV, **env}
    )


def test_output_and_exit_code_of_the_program_come_through() -> None:
    said: list[str] = []
    program = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"

    code, out, err = Minded([sys.executable, "-c", program], cwd=None, env=ENV).wait(said.append)

    assert (code, out, err, said) == (7, "out", "err", ["out"])


def test_a_signal_that_ended_the_program_is_its_exit_code() -> None:
    program = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"

    assert Minded([sys.executable, "-c", program], cwd=None, env=ENV).wait()[0] == 137


def test_a_program_that_cannot_be_started_is_said() -> None:
    code, _, err = Minded(["/nonexistent/pulumi"], cwd=None, env=ENV).wait()

    assert (code, err) == (127, "cannot start /nonexistent/pulumi: No such file or directory")


def test_what_the_program_left_behind_ends_with_it(tmp_path: Path) -> None:
    started = minded(tmp_path, 0)

    assert started.wait()[0] == 3
    assert all_gone(family(tmp_path), 0)


def test_closing_the_pipe_ends_everything(tmp_path: Path) -> None:
    started = minded(tmp_path, 3600)
    pids = family(tmp_path)
    assert {os.getsid(pid) for pid in pids} == {started.session}

    started.end()

    assert all_gone([*pids, started.session], LIMIT)


def test_a_command_killed_with_9_takes_everything_with_it(tmp_path: Path) -> None:
    """The pipe closes with the command, whatever ended it."""
    command = textwrap.dedent(
        f"""
        from jr2_infra.engine.minded import Minded
        Minded([{sys.executable!r}, "-c", {FAMILY!r}, {str(tmp_path)!r}, "3600"], cwd=None, env={ENV})
        print("started", flush=True)
        import time; time.sleep(3600)
        """
    )
    with subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE) as process:
        pids = family(tmp_path)
        process.kill()
        process.wait()

        assert all_gone(pids, LIMIT)


def test_an_interrupt_of_the_command_leaves_nothing(tmp_path: Path) -> None:
    started = minded(tmp_path, 3600)
    pids = family(tmp_path)

    with interrupt() as interrupted, pytest.raises(KeyboardInterrupt):
        # The first word of the family is read when the wait has begun.
        started.wait(lambda _: interrupted.send())

    assert all_gone(pids, 0)


def test_the_end_of_a_session_is_waited_for_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A large program ends some time after it was killed, and could still write in that time."""
    killed: list[int] = []

    # It stands for one that was killed, and ends when it was looked at often.
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True) as dying:
        assert dying.stdin is not None
        end = dying.stdin.close

        def kill(pid: int, _session: int) -> None:
            killed.append(pid)
            if len(killed) == 60:
                end()

        monkeypatch.setattr(minder, "_kill", kill)
        monkeypatch.setattr(minder, "_PATIENCE", LIMIT)
        minder.end_session(dying.pid)

        assert minder.session_members(dying.pid) == []
    assert set(killed) == {dying.pid}
    assert len(killed) >= 60


def test_only_the_session_that_is_meant_is_ended(tmp_path: Path) -> None:
    other = minded(tmp_path, 3600)
    pids = family(tmp_path)
    try:
        minder.end_session(other.session + 1_000_000)
        assert all(process_table.start_of(pid) for pid in pids)
        mine = process_table.start_of(os.getpid()) or ""
        assert process_table.end_left_over(os.getsid(0), mine, "no-such-mark") == []
    finally:
        other.end()


@pytest.mark.parametrize("mark", ["PATH=", "PATH", "/", "", "=", "other/run.json", "run.json"])
def test_a_forged_record_ends_no_program_that_is_not_an_engine(tmp_path: Path, mark: str) -> None:
    """The session and its start are true; only an engine has the run file in its environment."""
    theirs = minded(tmp_path, 3600)
    pids = family(tmp_path)
    try:
        assert process_table.end_left_over(theirs.session, theirs.start, mark) == []
        assert all(process_table.start_of(pid) for pid in pids)
    finally:
        theirs.end()


def test_what_has_the_run_file_of_the_record_is_ended(tmp_path: Path) -> None:
    ours = minded(tmp_path, 60, JR2_RUN_FILE="/dev/shm/jr2-0-abc/run.json")
    pids = family(tmp_path)
    try:
        left = process_table.end_left_over(ours.session, "", "/dev/shm/jr2-0-abc/run.json")
        assert set(pids) <= set(left)
        assert all_gone(pids, LIMIT)
    finally:
        ours.end()
