"""An event that was not taken."""

from __future__ import annotations

from typing import Literal


class EventRefused(Exception):
    """The event was not taken and nothing changed.

    Args:
        code: the HTTP status of the answer.
        message: what the sender did wrong, and what would be right.
    """

    def __init__(self, code: Literal[400, 404, 409, 412, 413, 500, 503, 507], message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
