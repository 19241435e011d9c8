"""Questions on a terminal that need more than yes or no: a menu, a line, and lines that are hidden.

Whatever ends a question, an interrupt too, the terminal is left as it was found. A menu reads one
byte at a time, so that what was typed ahead is there for the next question.

Source: spec/converge.md §2.6, seed 003 (Let jr2 up make the key).
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
from collections.abc import Iterator, Sequence
from typing import Final, TextIO

_HELP: Final = "  (↑/↓ move · enter selects · esc cancels)"
_UP: Final = frozenset({"up", "k"})
_DOWN: Final = frozenset({"down", "j"})
_PICK: Final = frozenset({"\r", "\n"})
_CANCEL: Final = frozenset({"esc", "q", ""})
_ARROWS: Final = {b"[A": "up", b"[B": "down", b"OA": "up", b"OB": "down"}
_SEQUENCE_SECONDS: Final = 0.05
"""How long the rest of a key's bytes may take to follow its escape."""


def choose(stdin: TextIO, stderr: TextIO, question: str, options: Sequence[str]) -> int | None:
    """Show a menu and return the index of the option that was picked, or `None`.

    Arrow keys, `j` and `k` move, a digit moves to its option, enter picks; escape, `q` and the end
    of the input cancel.

    Args:
        stdin: a terminal.
        stderr: a terminal.
        question: stands above the options.
        options: one line each; one that is too wide is cut, so that a redraw hits its lines.
    """
    at = 0
    _write(stderr, f"{question}\n")
    with _settings(stdin, canonical=False):
        while True:
            _write(stderr, "".join(f"{line}\n" for line in _menu(stderr, options, at)))
            key = _key(stdin.fileno())
            if key in _UP:
                at = (at - 1) % len(options)
            elif key in _DOWN:
                at = (at + 1) % len(options)
            elif key.isdecimal() and 1 <= int(key) <= len(options):
                at = int(key) - 1
            # The cursor goes back to the first option, and what is below it away.
            _write(stderr, f"\x1b[{len(options) + 1}A\r\x1b[J")
            if key in _PICK:
                _write(stderr, f"{_line(options[at], picked=True)}\n")
                return at
            if key in _CANCEL:
                return None


def ask(stdin: TextIO, stderr: TextIO, question: str) -> str:
    """Return the line that is typed after a question, without its end."""
    _write(stderr, question)
    line = stdin.readline()
    if not line.endswith("\n"):
        _write(stderr, "\n")
    return line.rstrip("\r\n")


def ask_hidden(stdin: TextIO, stderr: TextIO, question: str, end: re.Pattern[str]) -> str:
    """Return the lines that are typed or pasted, while the terminal shows none of them.

    Args:
        stdin: where they come from.
        stderr: where the question goes.
        question: a line of its own.
        end: matches the last line; the end of the input is one, too.
    """
    lines: list[str] = []
    with _settings(stdin, canonical=True):
        _write(stderr, f"{question}\n")
        for line in iter(stdin.readline, ""):
            lines.append(line)
            if end.fullmatch(line.rstrip("\r\n")):
                break
    return "".join(lines)


@contextlib.contextmanager
def _settings(stdin: TextIO, *, canonical: bool) -> Iterator[None]:
    """Let the terminal echo nothing, and give each key at once unless `canonical`."""
    import termios

    number = stdin.fileno()
    before = termios.tcgetattr(number)
    after = termios.tcgetattr(number)
    after[3] &= ~(termios.ECHO | (0 if canonical else termios.ICANON))
    # What was typed or pasted ahead is kept.
    termios.tcsetattr(number, termios.TCSADRAIN, after)
    try:
        yield
    finally:
        termios.tcsetattr(number, termios.TCSADRAIN, before)


def _key(number: int) -> str:
    """Return a key: its character, or `up`, `down`, `esc`; empty at the end of the input."""
    byte = os.read(number, 1)
    if byte != b"\x1b":
        # Of a character of more bytes none is a key of ours.
        return byte.decode("ascii", "replace")
    rest = b""
    while select.select([number], [], [], _SEQUENCE_SECONDS)[0] and len(rest) < 8:
        more = os.read(number, 1)
        rest += more
        if not more or (len(rest) > 1 and more.isalpha()) or more == b"~":
            break
    return _ARROWS.get(rest, "other") if rest else "esc"


def _menu(stderr: TextIO, options: Sequence[str], at: int) -> Iterator[str]:
    width = shutil.get_terminal_size().columns
    with contextlib.suppress(OSError, ValueError):
        width = os.get_terminal_size(stderr.fileno()).columns or width
    for line in (*(_line(text, picked=i == at) for i, text in enumerate(options)), _HELP):
        yield line if len(line) < width else f"{line[: max(width - 2, 1)]}…"


def _line(option: str, *, picked: bool) -> str:
    return f"{'❯' if picked else ' '} {option}"


def _write(stream: TextIO, text: str) -> None:
    encoding = stream.encoding or "ascii"
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()
