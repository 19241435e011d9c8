"""`OPEN`: a part that the author leaves for the composer.

A Machine with an Open part can be imported and composed, and not registered: `jr2 check` and
`jr2 up` refuse it with the `customize(…)` line that binds the part.

Source: spec/authoring.md §1 (Open) and §8, ADR-0054.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class Open(enum.Enum):
    """The type of `OPEN`; it has no other value."""

    OPEN = "OPEN"

    def __repr__(self) -> str:
        return self.name


OPEN: Final = Open.OPEN
"""A part that a composer binds with `customize(…)`."""

Opening = Literal[Open.OPEN]
"""What a field takes besides its values when it may be left Open."""


def is_open(value: object) -> TypeIs[Opening]:
    """Say whether a part is Open.

    By name too: two copies of the Kit in one process would have two `OPEN`, and a part must not
    count as bound for that.
    """
    kind = type(value)
    return value is OPEN or (
        kind.__name__ == Open.__name__ and getattr(value, "name", None) == OPEN.name
    )
