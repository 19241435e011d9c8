"""One text of the seed, where it stands in the docs, and what shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One text of the seed.

    Args:
        text: the first line that the command prints.
        tests: the tests that show it, as pytest names them.
        page: the page of the docs that has it; `NOWHERE` for the line of a step that goes well.
        below: lines that follow it, each shown by one of the tests too.
    """

    text: str
    tests: tuple[str, ...] = ()
    page: str
    below: tuple[str, ...] = ()


CHECK: Final = "check.md"
CONVERGE: Final = "converge.md"
FIX: Final = "fix-a-failed-converge.md"
HOLD: Final = "hold-secrets.md"
NOWHERE: Final = ""
"""A line of a step, which the pages show in examples."""
GIT: Final = "give-the-cluster-git-credentials.md"
