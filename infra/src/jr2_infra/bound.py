"""The tie between a program and the command that started it: when the command goes, it goes.

It runs as a program of its own, with the standard library alone, and becomes what it starts:
`bound.py <parent> <signal> <program> <argument>…`. What asks the kernel cannot run between the fork
and the start of the program in our own process: a fork runs what libraries have registered for one,
and gRPC, whose threads the engine's providers need, then ends the child now and then.

Source: design §5.2 (fencing).
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

_DEATH_SIGNAL: Final = 1


def main(argv: list[str]) -> int:
    """Ask the kernel for the signal at the parent's end, then become the program.

    Returns:
        What a shell returns for a program that cannot be started; the parent's line says why.
    """
    parent, number, command = int(argv[1]), int(argv[2]), argv[3:]
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, number)
    if os.getppid() != parent:
        # It ended before the kernel was asked.
        return 128 + number
    try:
        os.execvp(command[0], command)  # noqa: S606 - a program and its arguments, no shell
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error.strerror}\n".encode())
        return 126 if isinstance(error, PermissionError) else 127


if __name__ == "__main__":
    sys.exit(main(sys.argv))
