"""The engine started under its minder, and ended with everything that it started.

Source: design §5.2 (fencing), field cases 4b–4f.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from .. import process_table, processes
from . import minder

Started = Callable[[int, str], None]
"""Is told the session and the start of the minder before the engine can have written anything."""


class Minded:
    """One program under a minder.

    Args:
        argv: the program and its arguments.
        cwd: where it runs.
        env: its whole environment.
    """

    def __init__(
        self, argv: Sequence[str | Path], *, cwd: Path | None, env: Mapping[str, str]
    ) -> None:
        reading, self._pipe = os.pipe()
        try:
            self._process = processes.start(
                [sys.executable, "-I", "-S", minder.__file__, str(reading), *argv],
                env=env,
                cwd=cwd,
                new_session=True,
                pass_fds=(reading,),
            )
            assert self._process.stdout is not None
            assert self._process.stderr is not None
            self._unread = [self._process.stdout, self._process.stderr]
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(reading)

    @property
    def session(self) -> int:
        """The session of the program, which is the minder's process number."""
        return self._process.pid

    @property
    def start(self) -> str:
        """When the minder was started."""
        return process_table.start_of(self._process.pid) or ""

    def wait(
        self,
        on_output: Callable[[str], object] | None = None,
        on_error: Callable[[str], object] | None = None,
    ) -> tuple[int, str, str]:
        """Wait for the program; return its exit code, standard output and standard error.

        However this ends, also by an interrupt, nothing of the session runs afterwards.
        """
        texts: list[list[str]] = [[], []]
        streams, self._unread = self._unread, []
        readers = [
            threading.Thread(target=_read, args=(stream, text, callback), daemon=True)
            for stream, text, callback in zip(streams, texts, (on_output, on_error), strict=True)
        ]
        begun: list[threading.Thread] = []
        try:
            for reader in readers:
                begun.append(reader)
                reader.start()
            code = self._process.wait()
        finally:
            self.end()
            for reader, stream in zip(readers, streams, strict=True):
                # An interrupt may come before all of them are started, or say so.
                if reader not in begun:
                    stream.close()
                elif reader.is_alive():
                    reader.join()
        return code, "\n".join(texts[0]), "\n".join(texts[1])

    def end(self) -> None:
        """Kill what is left of the session; calling it again does nothing."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1
        minder.end_session(self._process.pid)
        self._process.wait()
        while self._unread:
            self._unread.pop().close()


def _read(stream: IO[str], lines: list[str], callback: Callable[[str], object] | None) -> None:
    with stream:
        for line in stream:
            text = line.rstrip()
            lines.append(text)
            if callback is not None:
                callback(text)
