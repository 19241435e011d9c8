"""Why an Assembly, or a part of it, was not taken.

Source: design §5.5.
"""

from __future__ import annotations


class PublishError(Exception):
    """The Assembly was refused; the one that was current still is.

    Args:
        code: the HTTP status.
        message: one clause, without a full stop.
        problems: one text for each problem of the Assembly itself.
    """

    def __init__(self, code: int, message: str, problems: list[str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.problems = problems or []


def not_taken(failed: OSError) -> PublishError:
    """Return the refusal of what the volume did not take."""
    return PublishError(507, f"the state volume did not take it: {failed.strerror}")
