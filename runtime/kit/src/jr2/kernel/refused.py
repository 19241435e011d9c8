"""What the kernel raises of an event that is not for a run now.

A module of its own, since other modules derive from it, and of a compiled class they may not.
"""

from __future__ import annotations

from typing import Literal

from ..errors import Refusal

Code = Literal[400, 404, 409, 412]


class EventRefused(Refusal):
    """An event or an input is not for this run now; nothing changed.

    Args:
        code: the HTTP status that fits.
        message: says what would have been accepted.
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code: Code = code
