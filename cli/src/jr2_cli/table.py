"""A table for people: columns as wide as they need, two spaces between, nothing around."""

from __future__ import annotations

from collections.abc import Sequence


def draw(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return the lines of a table, with no space at the end of a line."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
