"""Where the process `jr2` begins: an interrupt is handled before anything else is imported.

Source: field case 4f, design §5.7.
"""

from __future__ import annotations

# `signal`, `typing` and `collections.abc` would take as long as the whole start of the interpreter;
# these two are loaded when it starts.
import _signal  # type: ignore[import-not-found]
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        arguments: what follows `jr2`; `None` takes it from the process, and then the process is
            this command's to its end.
    """
    if arguments is None:
        _signal.signal(_signal.SIGINT, _leave)
    try:
        from . import dispatch

        return dispatch.run(arguments)
    except ImportError as error:
        from . import incomplete

        os.write(2, f"{incomplete.words(error)}\n".encode())
        return 1


def _leave(number: int, _: object) -> None:
    """End the process: nothing was begun yet, or all is done."""
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(128 + number)
