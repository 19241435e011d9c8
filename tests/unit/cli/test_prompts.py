"""Questions on a real pseudo-terminal: what is shown, what the keys do, and how it is left."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import termios
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import pytest

from jr2_cli import prompts
from tests.interrupts import interrupt
from tests.waiting import LIMIT

QUESTION = "where should the git ssh key come from?"
OPTIONS = ("generate", "use /home/you/.ssh/id", "paste")
END = re.compile("-----END-----")


class Terminal:
    """A person's side of a pseudo-terminal, and the streams of the program's side."""

    def __init__(self, person: int, stdin: TextIO, stderr: TextIO) -> None:
        self._person = person
        self.stdin, self.stderr = stdin, stderr
        self.shown = ""
        self._read = b""

    def type(self, text: str) -> None:
        os.write(self._person, text.encode())

    def read_until(self, text: str) -> None:
        deadline = time.monotonic() + LIMIT
        while text not in self.shown:
            assert time.monotonic() < deadline, f"{text!r} was not shown: {self.shown!r}"
            # What is read may end in the middle of a letter.
            self._read += os.read(self._person, 65536)
            self.shown = self._read.decode(errors="replace")

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self.stdin.fileno())

    def resize(self, columns: int) -> None:
        termios.tcsetwinsize(self.stdin.fileno(), (24, columns))

    def answer(self, ask: Callable[[], Any], *steps: tuple[str, str]) -> Any:
        """Ask in a thread; for each step wait for a text, and type another."""
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(ask()))
        thread.start()
        for wait, text in steps:
            self.read_until(wait)
            self.type(text)
        thread.join(LIMIT)
        assert not thread.is_alive()
        return found[0]


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    person, program = pty.openpty()
    stdin, stderr = os.fdopen(os.dup(program)), os.fdopen(program, "w", encoding="utf-8")
    termios.tcsetwinsize(stdin.fileno(), (24, 120))
    yield Terminal(person, stdin, stderr)
    for stream in (stdin, stderr):
        with contextlib.suppress(OSError):
            stream.close()
    os.close(person)


HELP = "(↑/↓ move · enter selects · esc cancels)"


@pytest.mark.parametrize(
    ("keys", "picked"),
    [
        ("\r", 0),
        ("\n", 0),
        ("\x1b[B\r", 1),
        ("\x1bOB\x1bOB\r", 2),
        ("\x1b[A\r", 2),
        ("jjj\r", 0),
        ("k\r", 2),
        ("3\r", 2),
        ("3", None),
        ("9\r", 0),
        ("0\r", 0),
        ("x\x1b[3~é\r", 0),
        ("\x1b[1;5B\r", 0),
        ("q", None),
        ("\x1b", None),
    ],
)
def test_keys_of_the_menu(terminal: Terminal, keys: str, picked: int | None) -> None:
    def ask() -> int | None:
        return prompts.choose(terminal.stdin, terminal.stderr, QUESTION, OPTIONS)

    before = terminal.settings()
    steps = [(HELP, keys)]
    if keys == "3":
        # A digit moves and does not pick.
        steps.append(("\x1b[J", "q"))
    assert terminal.answer(ask, *steps) == picked
    assert terminal.settings() == before


def test_the_menu_is_shown_as_the_seed_has_it(terminal: Terminal) -> None:
    terminal.answer(
        lambda: prompts.choose(terminal.stdin, terminal.stderr, QUESTION, OPTIONS),
        (HELP, "j"),
        ("❯ use", "\r"),
    )
    first = terminal.shown.split("\x1b")[0]
    assert first.replace("\r", "") == (
        "where should the git ssh key come from?\n"
        "❯ generate\n"
        "  use /home/you/.ssh/id\n"
        "  paste\n"
        "  (↑/↓ move · enter selects · esc cancels)\n"
    )
    # A redraw starts at the first option, and the choice alone is left.
    assert "\x1b[4A\r\x1b[J  generate\r\n❯ use" in terminal.shown


def test_a_line_that_is_too_wide_is_cut(terminal: Terminal) -> None:
    terminal.resize(20)
    terminal.answer(
        lambda: prompts.choose(terminal.stdin, terminal.stderr, QUESTION, OPTIONS),
        ("ente…", "q"),
    )
    menu = terminal.shown.split("\x1b")[0].replace("\r", "").splitlines()[1:]
    assert menu == ["❯ generate", "  use /home/you/.s…", "  paste", "  (↑/↓ move · ente…"]


def test_what_was_typed_ahead_answers_the_next_question(terminal: Terminal) -> None:
    def ask() -> tuple[int | None, str]:
        picked = prompts.choose(terminal.stdin, terminal.stderr, QUESTION, OPTIONS)
        return picked, prompts.ask(terminal.stdin, terminal.stderr, "path: ")

    assert terminal.answer(ask, (HELP, "j\r~/key\r")) == (1, "~/key")


def test_hidden_lines_are_shown_to_nobody(terminal: Terminal) -> None:
    def ask() -> tuple[str, str]:
        hidden = prompts.ask_hidden(terminal.stdin, terminal.stderr, "paste:", END)
        return hidden, prompts.ask(terminal.stdin, terminal.stderr, "next: ")

    before = terminal.settings()
    found = terminal.answer(ask, ("paste:", "CANARY\r-----END-----\r"), ("next: ", "yes\r"))
    assert found == ("CANARY\n-----END-----\n", "yes")
    terminal.read_until("yes")
    assert "CANARY" not in terminal.shown
    assert terminal.settings() == before


def test_hidden_lines_end_with_the_input(terminal: Terminal) -> None:
    found = terminal.answer(
        lambda: prompts.ask_hidden(terminal.stdin, terminal.stderr, "paste:", END),
        ("paste:", "half\r\x04"),
    )
    assert found == "half\n"


def test_an_interrupt_leaves_the_terminal_as_it_was(terminal: Terminal) -> None:
    before = terminal.settings()

    with interrupt() as interrupted:

        def once_it_asks() -> None:
            terminal.read_until(HELP)
            interrupted.send()

        thread = threading.Thread(target=once_it_asks)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            prompts.choose(terminal.stdin, terminal.stderr, QUESTION, OPTIONS)
        thread.join()
    assert terminal.settings() == before
