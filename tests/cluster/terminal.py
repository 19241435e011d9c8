"""A person at a real terminal: a pseudo-terminal whose other side is a command's stdin and stderr."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.waiting import LIMIT


class TerminalSession:
    """A command that runs on a terminal of its own.

    Args:
        argv: the command.
        cwd: its folder.
        env: its whole environment.
    """

    def __init__(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self._person, program = pty.openpty()
        termios.tcsetwinsize(program, (50, 200))
        self.shown = ""
        self._read_so_far = b""
        try:
            self._child = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env={**env, "TERM": "xterm", "COLUMNS": "200"},
                stdin=program,
                stdout=program,
                stderr=program,
                start_new_session=True,
            )
        finally:
            os.close(program)

    @property
    def pid(self) -> int:
        """The command, and the process group that it leads."""
        return self._child.pid

    def wait_for(self, text: str, seconds: float = LIMIT) -> None:
        """Read until a text is shown."""
        deadline = time.monotonic() + seconds
        while text not in self.plain():
            assert time.monotonic() < deadline, f"{text!r} was not shown:\n{self.plain()}"
            assert self._read(), f"it ended before {text!r}:\n{self.plain()}"

    def type(self, text: str) -> None:
        """Type on the keyboard."""
        os.write(self._person, text.encode())

    def ended(self, seconds: float = 2 * LIMIT) -> int:
        """Read to the end and return the exit code."""
        deadline = time.monotonic() + seconds
        while self._read():
            assert time.monotonic() < deadline, f"it does not end:\n{self.plain()}"
        code = self._child.wait(timeout=LIMIT)
        os.close(self._person)
        return code

    def plain(self) -> str:
        """Return what was shown, without what moves the cursor or colours the text."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.shown).replace("\r", "")

    def _read(self) -> bool:
        if not select.select([self._person], [], [], 1)[0]:
            return True
        try:
            data = os.read(self._person, 65536)
        except OSError:
            # The other side is closed: on Linux the read fails.
            return False
        # What is read may end in the middle of a letter.
        self._read_so_far += data
        self.shown = self._read_so_far.decode(errors="replace")
        return bool(data)
