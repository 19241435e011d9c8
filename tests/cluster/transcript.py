"""The converge that docs/get-started.md shows, compared with what one printed.

Names, hashes, the processor and the place of the checkout differ from run to run, and a node that
has an image already is sent none. Everything else is the same, word for word and in this order.
"""

from __future__ import annotations

import re
from typing import Final

from .conftest import CHECKOUT

PAGE: Final = CHECKOUT / "docs" / "get-started.md"
FIRST: Final = "AGENTS.md: jr2 block updated for "
LAST: Final = "converged — `jr2 run <workflow>` when ready"
QUESTION: Final = " [y/N] "
DELIVERED: Final = "images: delivered "
_BLOCK: Final = re.compile(r"^```text\n(.*?)^```$", re.M | re.S)
_VALUES: Final = (
    (re.compile(r"\b[0-9a-f]{12}\b"), "<hash>"),
    (re.compile(r"linux/(amd64|arm64)"), "<platform>"),
    (re.compile(r"Orchestrator of \S+,"), "Orchestrator of <checkout>,"),
)


def of_page() -> list[str]:
    """Return the lines of the page."""
    (block,) = (text for text in _BLOCK.findall(PAGE.read_text(encoding="utf-8")) if LAST in text)
    lines: list[str] = block.splitlines()
    return lines


def of_run(stderr: str) -> list[str]:
    """Return the lines of the converge in what was printed."""
    lines = stderr.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(FIRST))
    return lines[first : lines.index(LAST) + 1]


def plain(lines: list[str], name: str) -> list[str]:
    """Return lines without what differs from run to run.

    Args:
        lines: of the page or of a run.
        name: the Instance's.
    """
    found: list[str] = []
    for line in lines:
        text = re.sub(rf'(?<![\w-])"?{re.escape(name)}"?(?![\w-])', "<name>", line)
        for value, word in _VALUES:
            text = value.sub(word, text)
        found.append(text)
    return found


def compared(lines: list[str]) -> list[str]:
    """Return the lines that each run prints: images may be there, and `--yes` asks nothing."""
    return [line for line in lines if not line.startswith(DELIVERED) and QUESTION not in line]
