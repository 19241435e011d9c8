"""How deep a value may be nested that leaves a Machine: what reads JSON stops at some depth.

Pydantic stops at 200, and a view or an answer puts the value some levels further down. A value that
is written here and not read there would end the process of all runs of an Assembly, so it is
refused where the author's function made it.

Source: spec/runtime.md §1.6, design §4.4 (user code faults its own run).
"""

from __future__ import annotations

import re
from typing import Final

MOST_NESTED: Final = 100
"""Lists and objects within each other."""
_MARKS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]')


class TooDeep(ValueError):
    """A value is nested deeper than one may be."""


def shallow(text: str) -> str:
    """Return a JSON text as it is.

    Raises:
        TooDeep: it is nested deeper than a value may be.
    """
    # Most values have fewer brackets than that in all.
    if text.count("[") + text.count("{") <= MOST_NESTED:
        return text
    depth = 0
    for mark in _MARKS.finditer(text):
        if mark[0] in "[{":
            depth += 1
            if depth > MOST_NESTED:
                raise TooDeep(f"it is nested deeper than {MOST_NESTED} lists and objects")
        elif mark[0] in "]}":
            depth -= 1
    return text
