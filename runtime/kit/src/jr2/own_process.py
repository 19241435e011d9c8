"""What a process does to itself before code that it must not trust runs beside it.

The processes of one worker container have one user, so that the kernel lets each of them read and
trace the others. A process that is hidden is spared that: of it, others see what `ps` shows.

Source: design §4.4, ADR-0165.
"""

from __future__ import annotations

import contextlib
import ctypes
from typing import Final

_PR_SET_DUMPABLE: Final = 4


def hide() -> None:
    """Let no other process of this user read this one's memory, environment or descriptors.

    User code can undo it for the process that it runs in, and for no other. Elsewhere than on Linux
    this does nothing.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def go_first() -> None:
    """Ask the kernel to take this process first when the memory of its container is short.

    It comes before `hide`: the file is somebody else's afterwards.
    """
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")
