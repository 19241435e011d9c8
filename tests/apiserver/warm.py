"""`jr2` without its start: an Instance's own command, loaded once and forked for each run.

A converge that is refused at once spends most of its time in the start of two interpreters and
in imports: the command typed, and the Instance's own that it hands off to. `Warm` keeps the second
one loaded. What runs is the program itself, in a process of its own, as the Handoff leaves it; that
the start does the same is shown by the tests that type the command (`tests/unit/cli`,
`test_first_contact.py`, `tests/cluster`).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jr2 import names
from tests.waiting import LIMIT


class Warm:
    """A loaded command.

    Args:
        environment: the `.venv` of the Instance whose command it is.
        folder: where what a run printed is kept until it was read.
        process: the process that forks.
    """

    def __init__(self, environment: Path, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.environment = environment
        self._folder = folder
        self._process = process
        self._hangs = ""

    def run(
        self, arguments: Sequence[str], *, cwd: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run `jr2` to its end, and return what it printed.

        Args:
            arguments: what is typed after `jr2`.
            cwd: the folder in which it is typed.
            environment: every variable that the run sees, beside that of the Handoff.
        """
        assert not self._hangs, f"a run before still hangs: {self._hangs}"
        command = [str(cwd / ".venv" / "bin" / "jr2"), *arguments]
        streams = {name: self._folder / name for name in ("stdout", "stderr")}
        request = {
            "command": command,
            "cwd": str(cwd),
            "environment": {
                **environment,
                names.ENV_HANDOFF_FROM: f"{names.KIT_VERSION} {self.environment}",
            },
            **{name: str(path) for name, path in streams.items()},
        }
        to, answers = self._process.stdin, self._process.stdout
        assert to is not None
        assert answers is not None
        to.write(f"{json.dumps(request)}\n".encode())
        to.flush()
        ready, _, _ = select.select([answers], [], [], LIMIT)
        if not ready:
            # Its answer would be taken for that of the next run.
            self._hangs = f"jr2 {' '.join(arguments)}"
        assert ready, f"{self._hangs} took more than {LIMIT:g} s"
        code = answers.readline()
        assert code, "the process that forks has ended"
        printed = {name: path.read_text(encoding="utf-8") for name, path in streams.items()}
        return subprocess.CompletedProcess(command, int(code), **printed)


@contextlib.contextmanager
def warm(environment: Path, folder: Path) -> Iterator[Warm]:
    """Load the command of an environment, and end it and its runs in the end.

    Args:
        environment: the `.venv`.
        folder: an empty folder of the caller.
    """
    process = subprocess.Popen(
        # `-P`: the folder of these tests is nothing that the command can import.
        [
            str(environment / "bin" / "python"),
            "-P",
            str(Path(__file__).with_name("warm_process.py")),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # A run that hangs ends with the group.
        start_new_session=True,
    )
    try:
        yield Warm(environment, folder, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
