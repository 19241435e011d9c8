"""What user code may do wrong inside a step, and the text that the run ends with.

Source: design §4.1, spec/runtime.md §1.7.
"""

from __future__ import annotations

from typing import Final, NoReturn

from ..tasks import reason

USER_ERRORS: Final = (Exception, SystemExit)
"""What user code may raise; an interrupt of the process is not its own."""


class Fault(Exception):
    """User code failed inside a step; the text is the fault of its Machine."""


class WrongType(Exception):
    """User code returned something else than it says; the text begins with `returned`."""


def broke(what: str, error: BaseException) -> NoReturn:
    """Say what of the user's failed.

    Raises:
        Fault: always.
    """
    if isinstance(error, WrongType):
        raise Fault(f"{what} {error}") from None
    raise Fault(f"{what} raised {reason(error)}") from error


def is_text(value: object, limit: int) -> bool:
    """Whether a value can stand in a key or an address: a short text without a slash."""
    return isinstance(value, str) and 0 < len(value) <= limit and "/" not in value
