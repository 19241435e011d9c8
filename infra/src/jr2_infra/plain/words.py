"""The lines of the contract in Pulumi's log, and a refusal that ends the program without a trace.

Source: design §5.1 (the same refusals), libraries.md §2.1 (rule 6), ADR-0123.
"""

from __future__ import annotations

import sys
from typing import Final, NoReturn

import pulumi

from jr2.errors import Jr2Error

_SAID: Final = 32
"""The exit code of a program that told its user already; Pulumi adds no words of its own."""
_WARNING: Final = "warning: "
_ERROR: Final = "error: "


class PulumiReporter:
    """Says each line as a diagnostic of the stack."""

    def line(self, text: str, *, code: str = "line") -> None:
        """Say a line."""
        pulumi.log.info(text)

    def warning(self, text: str, *, code: str = "warning") -> None:
        """Say a warning; Pulumi writes `warning: ` itself."""
        pulumi.log.warn(text.removeprefix(_WARNING))

    def progress(self, text: str | None) -> None:
        """Show nothing: Pulumi shows what takes long."""

    def confirm(self, question: str) -> bool:
        """Take the question of Pulumi as ours: nothing is applied before it is answered."""
        pulumi.log.info(f"{question} — Pulumi asks before it applies anything, or was told --yes")
        return True


def stop(error: Jr2Error) -> NoReturn:
    """End the program with the text of an error as the only one, and no traceback."""
    pulumi.log.error(error.printed.removeprefix(_ERROR))
    sys.exit(_SAID)
