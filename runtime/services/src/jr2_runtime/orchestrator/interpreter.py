"""How the interpreter is set once a start is over: what garbage it looks for, and who gets it when.

What a start has made stays for good. Were it looked through for garbage each time, every request
would wait for 60 ms now and then.

The thread of the store gives the interpreter away in each statement and wants it back after it. While
the loop has work it gets it after the switch interval, and a commit has several statements: with
Python's own 5 ms a commit of half a millisecond takes 20 ms now and then.

Source: ADR-0162, ADR-0164.
"""

from __future__ import annotations

import gc
import sys
from typing import Final

SWITCH: Final = 0.001
"""Seconds after which a thread that waits for the interpreter gets it."""


def settle() -> None:
    """Set the interpreter for a program that serves; what there is now is never garbage."""
    gc.freeze()
    gc.enable()
    sys.setswitchinterval(SWITCH)
