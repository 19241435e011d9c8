"""What the command says when its own environment lacks a package: an install that did not end.

Only the standard library is there for sure, and nothing else is imported.
"""

from __future__ import annotations

import sys


def words(error: ImportError) -> str:
    """Return the line for a package that is not there.

    Args:
        error: what the import said.
    """
    lacks = f"has no module {error.name!r}" if error.name else "is not whole"
    return (
        f"error: {sys.prefix} {lacks}, which jr2 needs — install there again: the Instance's "
        "dependencies (uv, poetry, or pdm), or `uv tool install --reinstall jr2-cli`"
    )
