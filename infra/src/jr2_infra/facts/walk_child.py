"""The child process of the walk: a script for the Instance's interpreter, not a module of ours.

    python -I walk_child.py <the command's jr2> <folder> all|config <variable>…

It first keeps its standard output for the report alone: what the folder's code prints goes to
standard error. Then it hands over to the `jr2` that this interpreter imports, which must be the
command's.
"""

from __future__ import annotations

import _thread
import importlib.machinery
import os
import select
import sys

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9


def _end_with_parent(channel: int) -> None:
    """End this process when the one that reads its report ends, whatever the folder's code does."""
    # Code that never gives the interpreter up is only stopped by the kernel.
    if sys.platform == "linux":
        try:
            import ctypes

            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)
        except (ImportError, OSError, AttributeError):
            pass

    def watch() -> None:
        watched = select.poll()
        watched.register(channel, 0)
        while not watched.poll():
            pass
        os._exit(4)

    # The pipe also tells of a parent that ended before the kernel was asked.
    _thread.start_new_thread(watch, ())


def _main(expected: str, *arguments: str) -> int:
    channel = os.dup(1)
    os.dup2(2, 1)
    _end_with_parent(channel)
    spec = importlib.machinery.PathFinder.find_spec("jr2")
    found = os.path.dirname(os.path.realpath(spec.origin)) if spec and spec.origin else "nothing"
    if found != expected:
        sys.stderr.write(f"jr2 resolves to {found}, and this jr2 runs against {expected}\n")
        return 3
    from jr2 import walk

    return walk.main(arguments, channel)


if __name__ == "__main__":
    code = _main(*sys.argv[1:])
    sys.stderr.flush()
    # A thread that the folder's code left behind must not keep the process.
    os._exit(code)
