"""The texts that the pages quote: code spans of more than one word, and the lines of blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.contract.messages.of_code import PREFIXES

_SPAN: Final = re.compile(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)")
_FENCE: Final = re.compile(r"^\s*```")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quoted:
    """A text on a page.

    Args:
        page: the name of its file.
        line: where it stands.
        text: the text, with `<…>` for values.
    """

    page: str
    line: int
    text: str

    @property
    def is_message(self) -> bool:
        """It starts as a message of the command does, so the command must say it."""
        return self.text.startswith(PREFIXES)

    def __str__(self) -> str:
        return f"docs/{self.page}:{self.line}: {self.text}"


def quoted(page: Path) -> Iterator[Quoted]:
    """Yield the texts of a page: code spans, and the lines of its blocks."""
    is_block = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if _FENCE.match(line):
            is_block = not is_block
            continue
        found = [line.strip()] if is_block else [_plain(span[1]) for span in _SPAN.findall(line)]
        for text in found:
            if " " in text:
                yield Quoted(page=page.name, line=number, text=text)


def _plain(span: str) -> str:
    """Return what a code span shows: in a table a bar is written with a backslash."""
    return span.strip().replace("\\|", "|")
