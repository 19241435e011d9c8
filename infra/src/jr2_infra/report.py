"""How the Converge speaks to a person: one line for each step, and a question when it must ask.

The Converge decides the words; the command decides where they go. Status goes to stderr, results
go to stdout, and `--json` streams the same steps as events.

Source: design §5.7.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

_LEADING_WORD: Final = re.compile(r"([a-z]+(?: [a-z]+)*): ")


def line_code(text: str) -> str:
    """Return the stable name of a step's line for `--json`: what stands before its first colon.

    `repo cache: waiting for rollout` has the code `repo-cache`; a line that starts otherwise has
    the code `line`.
    """
    found = _LEADING_WORD.match(text)
    return found[1].replace(" ", "-") if found else "line"


class Reporter(Protocol):
    """What the command gives to the Converge."""

    def line(self, text: str, *, code: str = "line") -> None:
        """Print one line of the contract on stderr; `code` is its stable name in `--json`."""

    def warning(self, text: str, *, code: str = "warning") -> None:
        """Print a warning; `text` holds the whole line, with its `warning: ` where it has one."""

    def progress(self, text: str | None) -> None:
        """Show what takes long, on a terminal only; `None` takes the progress line away."""

    def confirm(self, question: str) -> bool:
        """Ask a yes/no question; with no terminal print the `not a tty` line and answer no."""


class Prompter(Protocol):
    """What the command gives to a step that has more to ask than yes or no."""

    def choose(self, question: str, options: Sequence[str]) -> int | None:
        """Show a menu and return which option was picked, or `None`.

        With no terminal a line says so, nothing is asked, and the answer is `None`.
        """

    def ask(self, question: str) -> str:
        """Return the line that a person types after a question."""

    def ask_hidden(self, question: str, end: re.Pattern[str]) -> str:
        """Return the lines that a person types or pastes, shown to nobody.

        Args:
            question: what is asked, on a line of its own.
            end: matches the last line.
        """
