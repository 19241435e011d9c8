"""Where the words of the command go: status to stderr, results to stdout, events with `--json`.

A line of the contract is written as it is, with no wrapping, no markup and no colour. What takes
long is shown on a terminal only, below the last line, and goes away again.

Source: design §5.7, spec/converge.md §2.1 and §2.6.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO

from . import prompts

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

    from rich.status import Status

    from jr2.errors import Jr2Error


class Output:
    """The one voice of a command: a `jr2_infra.report.Reporter`, and a `Prompter`.

    Args:
        stdout: where results go, and events when they are streamed.
        stderr: where lines go.
        stdin: where an answer comes from.
    """

    def __init__(
        self,
        *,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        stdin: TextIO | None = None,
    ) -> None:
        self._stdout = sys.stdout if stdout is None else stdout
        self._stderr = sys.stderr if stderr is None else stderr
        self._stdin = sys.stdin if stdin is None else stdin
        self._streams = False
        self._failure: tuple[TextIO, OSError] | None = None
        self._status: Status | None = None
        # Steps of the Converge speak from threads of their own.
        self._lock = threading.RLock()

    def stream_events(self) -> None:
        """From now on write each line as an event `{"code": …, "text": …}` on stdout."""
        self._streams = True

    def line(self, text: str, *, code: str = "line") -> None:
        """Write one line of the contract.

        Args:
            text: the line, or more lines that belong together.
            code: its stable name in the stream of events.
        """
        if self._streams:
            self._write(self._stdout, json.dumps({"code": code, "text": text}, ensure_ascii=False))
        else:
            self._write(self._stderr, text)

    def warning(self, text: str, *, code: str = "warning") -> None:
        """Write a warning; `text` is the whole line."""
        self.line(text, code=code)

    def error(self, error: Jr2Error) -> None:
        """Write the lines of an error, with the prefix that says what it left behind."""
        self.line(error.printed, code=_code(error))

    def result(self, value: Any) -> None:
        """Write a result on stdout as JSON: one line, or indented on a terminal."""
        indent = 2 if self._stdout.isatty() else None
        self.text(json.dumps(value, ensure_ascii=False, indent=indent))

    def text(self, text: str) -> None:
        """Write a result on stdout that is no JSON, such as a table."""
        self._write(self._stdout, text)

    def progress(self, text: str | None) -> None:
        """Show what takes long, on a terminal only; `None` takes it away."""
        if self._streams or not self._stderr.isatty():
            return
        if text is None:
            self._clear()
            return
        from rich.console import Console
        from rich.status import Status
        from rich.text import Text

        # Text, not str: a path may hold `[`, which rich reads as markup.
        shown = Text(text, overflow="ellipsis", no_wrap=True)
        with self._lock:
            if self._status is None:
                console = Console(file=self._stderr, highlight=False, markup=False)
                self._status = Status(shown, console=console)
                self._status.start()
            else:
                self._status.update(shown)

    def confirm(self, question: str) -> bool:
        """Ask a yes/no question on the terminal.

        Args:
            question: the whole question, without `[y/N]`.

        Returns:
            Whether the answer was `y` or `yes`. With no terminal nothing is asked, a line says so,
            and the answer is no.
        """
        self._clear()
        if not (self._stdin.isatty() and self._stderr.isatty()):
            self.line(
                f"{question} — not a tty; pass --yes to proceed non-interactively", code="not-a-tty"
            )
            return False
        self._stderr.write(f"{question} [y/N] ")
        self._stderr.flush()
        return self._stdin.readline().strip().lower() in ("y", "yes")

    def choose(self, question: str, options: Sequence[str]) -> int | None:
        """Show a menu on the terminal and return which option was picked; `None` for none.

        With no terminal nothing is asked, a line says so, and the answer is `None`.
        """
        self._clear()
        if not (self._stdin.isatty() and self._stderr.isatty()):
            self.line(
                f"{question} — not a tty; pass --yes to take the recommended option "
                "non-interactively",
                code="not-a-tty",
            )
            return None
        return prompts.choose(self._stdin, self._stderr, question, options)

    def ask(self, question: str) -> str:
        """Return the line that is typed after a question; empty at the end of the input."""
        self._clear()
        return prompts.ask(self._stdin, self._stderr, question)

    def ask_hidden(self, question: str, end: re.Pattern[str]) -> str:
        """Return the lines up to one that matches `end`; the terminal shows none of them."""
        self._clear()
        return prompts.ask_hidden(self._stdin, self._stderr, question, end)

    def close(self) -> None:
        """Take a progress line away; nothing is written after it."""
        self._clear()

    @property
    def failed(self) -> bool:
        """Whether something could not be written; whoever wrote it got the `OSError`."""
        return self._failure is not None

    def settle(self) -> bool:
        """Write what is still held back, and say it on stderr when something was not written.

        A reader that went away is not spoken of. Nothing is raised, and after a failure nothing is
        left that the interpreter could fail to write at its end.

        Returns:
            Whether all was written.
        """
        for stream in (self._stdout, self._stderr):
            try:
                stream.flush()
            except OSError as error:
                self._fail(stream, error)
        if self._failure is None:
            return True
        stream, failure = self._failure
        if stream is self._stdout and not isinstance(failure, BrokenPipeError):
            try:
                self._write(self._stderr, f"error: cannot write to stdout: {failure.strerror}")
            except OSError:
                # Both streams fail; the exit code alone says it.
                return False
        return False

    def _write(self, stream: TextIO, text: str) -> None:
        with self._lock:
            shown = self._status
            if shown is not None:
                shown.stop()
            try:
                try:
                    stream.write(f"{text}\n")
                except UnicodeEncodeError:
                    # A terminal of another encoding still gets the line; `—` and `→` become `?`.
                    encoding = stream.encoding or "ascii"
                    stream.write(f"{text}\n".encode(encoding, "replace").decode(encoding))
                stream.flush()
            except OSError as error:
                self._fail(stream, error)
                raise
            if shown is not None:
                shown.start()

    def _fail(self, stream: TextIO, error: OSError) -> None:
        """Remember the first failure, and let what is still to be written there go nowhere."""
        if self._failure is None:
            self._failure = (stream, error)
        try:
            number = stream.fileno()
        except OSError:
            return
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)

    def _clear(self) -> None:
        with self._lock:
            if self._status is not None:
                self._status.stop()
                self._status = None


def _code(error: Jr2Error) -> str:
    from jr2 import errors

    match error:
        case errors.Refusal():
            return "refusal"
        case errors.Usage():
            return "usage"
        case errors.Aborted():
            return "aborted"
        case _:
            return "error"


_CURRENT: ContextVar[Output] = ContextVar("jr2_cli.output")


def current() -> Output:
    """Return the output of the command that runs."""
    return _CURRENT.get()


def begin() -> Output:
    """Make the output of a command that starts now, and return it."""
    output = Output()
    _CURRENT.set(output)
    return output
