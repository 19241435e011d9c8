"""How a command ends that is interrupted, killed, or not read any more: what it says and leaves."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jr2 import names
from jr2_cli import interrupt
from tests.unit.cli.conftest import RUN, TOKEN, run_status
from tests.waiting import LIMIT

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FarOrchestrator


Begin = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Start programs, which end with the test however it ends."""
    with contextlib.ExitStack() as started:

        def start(argv: Sequence[str], **options: Any) -> subprocess.Popen[str]:
            child = subprocess.Popen(argv, text=True, **options)
            started.enter_context(child)
            started.callback(child.kill)
            return child

        yield start


def test_an_interrupt_ends_the_command_with_130_and_its_kubectl_too(
    begin: Begin, tmp_path: Path
) -> None:
    """A run that is followed is left, whatever was started; and that is gone."""
    waiting = (
        "import sys, threading\n"
        "from jr2_cli import application, main, processes\n"
        "def wait(arguments):\n"
        "    child = processes.start([sys.executable, '-c', 'import time; time.sleep(3600)'])\n"
        "    print(child.pid, flush=True)\n"
        "    threading.Event().wait()\n"
        "application.run = wait\n"
        "sys.exit(main.main(['runs']))\n"
    )
    command = begin([sys.executable, "-c", waiting], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert command.stdout is not None
    child = int(command.stdout.readline())

    command.send_signal(signal.SIGINT)
    # Long before what was started would end of itself.
    _, stderr = command.communicate(timeout=LIMIT)

    assert command.returncode == 130
    assert stderr == "interrupted\n"
    assert interrupt.LIMIT < 2
    assert _gone(child)


@pytest.mark.parametrize("module", ["jr2_cli.dispatch", "jr2_cli.handoff", "jr2.names", "signal"])
def test_an_interrupt_while_the_command_loads_is_one_line(module: str) -> None:
    loading = (
        "import importlib.abc, os, signal, sys\n"
        "class Interrupt(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        f"sys.modules.pop({module!r}, None)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from jr2_cli.main import main\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", loading, "--help"], capture_output=True, text=True, timeout=LIMIT
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_a_reader_that_goes_away_is_no_failure_to_speak_of(
    begin: Begin, far: FarOrchestrator
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = begin(
        [sys.executable, "-m", "jr2_cli", "runs", "--url", far.url],
        env={**os.environ, names.ENV_TOKEN: TOKEN},
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    _, stderr = command.communicate(timeout=LIMIT)

    assert (command.returncode, stderr) == (1, f"→ {far.url}\n")


def test_an_interrupted_follower_says_that_the_run_goes_on(
    begin: Begin, far: FarOrchestrator
) -> None:
    far.feeds = [[("status", run_status())]]
    command = begin(
        [sys.executable, "-m", "jr2_cli", "logs", RUN, "-f", "--url", far.url],
        env={**os.environ, names.ENV_TOKEN: TOKEN},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert command.stderr is not None
    while "attaching again" not in command.stderr.readline():
        pass
    command.send_signal(signal.SIGINT)
    stdout, stderr = command.communicate(timeout=LIMIT)

    assert (command.returncode, stdout) == (130, "")
    assert stderr.splitlines() == [
        f"the run goes on — `jr2 logs {RUN} -f` follows it",
        "interrupted",
    ]


@pytest.mark.parametrize(
    ("writes", "line"),
    [
        ("", "interrupted — nothing was applied"),
        ("converge.begin_to_write()", "interrupted — run `jr2 up` again to finish"),
    ],
)
@pytest.mark.parametrize("cleanup", ["pass", "threading.Event().wait()"])
def test_an_interrupted_up_says_whether_anything_was_applied(
    begin: Begin, instance: Path, writes: str, line: str, cleanup: str
) -> None:
    """Also when what it cleans up does not end."""
    waiting = (
        "import sys, threading\n"
        "from jr2_cli import interrupt, main\n"
        "from jr2_infra import converge, check\n"
        "interrupt.LIMIT = 1.5\n"
        "def wait(*_, **__):\n"
        f"    {writes or 'pass'}\n"
        "    print('up', flush=True)\n"
        "    try:\n"
        "        threading.Event().wait()\n"
        "    finally:\n"
        f"        {cleanup}\n"
        "check.open_instance = wait\n"
        "sys.exit(main.main(['up']))\n"
    )

    assert _interrupted(begin, waiting, cwd=instance) == (130, f"{line}\n")


@pytest.mark.parametrize(
    "second",
    [
        "close = Output.close\nOutput.close = lambda self: (close(self), again())",
        "settle = Output.settle\nOutput.settle = lambda self: (again(), settle(self))[1]",
        "atexit.register(again)",
    ],
    ids=["before its last line", "after its last line", "at the end of the interpreter"],
)
def test_an_interrupt_of_a_command_that_is_leaving_changes_nothing(
    begin: Begin, second: str
) -> None:
    """As of somebody who presses the keys twice: the line that says how things stand is there once."""
    leaving = (
        "import atexit, os, signal, sys, threading\n"
        "from jr2_cli import application, dispatch, interrupt, main\n"
        "from jr2_cli.output import Output\n"
        "def again():\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "def wait(arguments):\n"
        "    interrupt.ends_with(lambda: 'how it stands')\n"
        "    print('up', flush=True)\n"
        "    threading.Event().wait()\n"
        "application.run = wait\n"
        f"{second}\n"
        "sys.argv[1:] = ['runs']\n"
        "sys.exit(main.main())\n"
    )

    assert _interrupted(begin, leaving) == (130, "how it stands\n")


def test_a_command_whose_cleanup_hangs_leaves_all_the_same(begin: Begin) -> None:
    hanging = (
        "import sys, threading\n"
        "from jr2_cli import application, interrupt, main\n"
        "interrupt.LIMIT = 0.2\n"
        "def hang(arguments):\n"
        "    try:\n"
        "        print('up', flush=True)\n"
        "        threading.Event().wait()\n"
        "    finally:\n"
        "        threading.Event().wait()\n"
        "application.run = hang\n"
        "sys.exit(main.main(['runs']))\n"
    )
    command = begin([sys.executable, "-c", hanging], stdout=subprocess.PIPE)
    assert command.stdout is not None
    command.stdout.readline()

    command.send_signal(signal.SIGINT)

    assert command.wait(timeout=LIMIT) == 130
    command.stdout.close()


def test_a_signal_that_another_thread_gets_is_heard_while_the_main_thread_waits(
    begin: Begin,
) -> None:
    """As one is that comes just before the wait begins: the kernel wakes nobody for it."""
    waiting = (
        "import signal, sys, threading\n"
        "from jr2_cli import application, main\n"
        "def wait(arguments):\n"
        "    threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
        "    print('up', flush=True)\n"
        "    threading.Event().wait()\n"
        "application.run = wait\n"
        "sys.exit(main.main(['runs']))\n"
    )

    assert _interrupted(begin, waiting) == (130, "interrupted\n")


def test_what_was_started_ends_with_a_command_that_is_killed(begin: Begin) -> None:
    killed = (
        "import sys, threading\n"
        "from jr2_cli import processes\n"
        "child = processes.start([sys.executable, '-c', 'import time; time.sleep(3600)'])\n"
        "print(child.pid, flush=True)\n"
        "threading.Event().wait()\n"
    )
    command = begin([sys.executable, "-c", killed], stdout=subprocess.PIPE)
    assert command.stdout is not None
    child = int(command.stdout.readline())

    command.kill()
    command.wait(timeout=LIMIT)
    command.stdout.close()

    assert _gone(child)


def _interrupted(begin: Begin, script: str, **options: Any) -> tuple[int, str]:
    """Interrupt a command once it says `up`; return its exit code and what it said then."""
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = begin([sys.executable, "-c", script], **piped, **options)
    assert command.stdout is not None
    assert command.stdout.readline() == "up\n"
    command.send_signal(signal.SIGINT)
    _, stderr = command.communicate(timeout=LIMIT)
    return command.returncode, stderr


def _gone(pid: int, within: float = LIMIT) -> bool:
    """Wait until a process is no more, or only a name that its parent has not read yet."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        os.sched_yield()
    return False
