"""A program that is bound to the command which started it, as the process that it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from jr2_infra import bound, processes
from tests.waiting import LIMIT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties processes")

FORKS_THAT_FAIL = textwrap.dedent(
    """
    import os, signal, subprocess, sys
    from jr2_infra import processes

    # What a library with threads of its own does in a fork that nobody announced to it.
    os.register_at_fork(after_in_child=os.abort)
    print(processes.run_family([sys.executable, "-c", "print('started')"], env={}, cwd=".").stdout)
    """
)


def test_a_library_that_cannot_bear_a_fork_does_not_end_the_program() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FORKS_THAT_FAIL], capture_output=True, text=True, check=True
    )

    assert ran.stdout.split() == ["started"], ran.stderr


def test_the_program_is_the_process_that_was_started_under_its_own_name(tmp_path: Path) -> None:
    show = "import os, sys; print(os.getpid(), sys.orig_argv[1:])"
    with subprocess.Popen(
        processes.bound_to_us([sys.executable, "-c", show], signal.SIGTERM),
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.communicate(timeout=LIMIT)[0] == f"{child.pid} {['-c', show]}\n"


def test_a_parent_that_ended_before_the_kernel_was_asked_leaves_nothing(tmp_path: Path) -> None:
    sign = tmp_path / "started"
    ran = subprocess.run(
        [sys.executable, "-I", "-S", bound.__file__, "1", str(int(signal.SIGKILL)), "touch", sign],
        check=False,
    )

    assert ran.returncode == 128 + signal.SIGKILL
    assert not sign.exists()


def test_a_program_that_is_not_there_is_said_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        processes.bound_to_us(["no-such-program"], signal.SIGKILL)
    with pytest.raises(FileNotFoundError, match="python3"):
        processes.bound_to_us(["python3"], signal.SIGKILL, env={"PATH": str(tmp_path)})


def test_a_program_that_the_kernel_refuses_ends_as_in_a_shell(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF no program")
    broken.chmod(0o755)
    ran = subprocess.run(
        processes.bound_to_us([broken], signal.SIGKILL, env=dict(os.environ)),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (127, f"cannot start {broken}: Exec format error\n")
