"""The child process of the walk: a script for the Instance's interpreter, not a module of ours.

    python -I walk_child.py <the command's jr2> <folder> all|config <variable>…

It first keeps its standard output for the report alone: what the folder's code prints goes to
standard error. Then it hands over to the `jr2` that this interpreter imports, which must be the
command's.

Code that takes ever more memory would take all of the machine first. Behind a bound a large piece
is a `MemoryError`, which is said as any fault is; many small ones are noticed before that, since an
interpreter that has nothing left may never come to say so.

Source: design §5.1, ADR-0170.
"""

from __future__ import annotations

import _thread
import importlib.machinery
import os
import select
import sys

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9
_BOUND = 9 * 2**29
"""Bytes of private data; libraries reserve far more address space than that, and do not use it."""
_SHARE = 8 / 9
"""Of the bound: more than that is too much."""
_LOOKS_EACH = 100
"""Milliseconds between two looks."""


def _watch(channel: int) -> None:
    """End this process, whatever the folder's code does, with the one that reads its report.

    It ends too when it takes too much memory.
    """
    # Code that never gives the interpreter up is only stopped by the kernel.
    if sys.platform == "linux":
        try:
            import ctypes

            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)
        except (ImportError, OSError, AttributeError):
            pass

    most = int(_bound_memory() * _SHARE)

    def watch() -> None:
        watched = select.poll()
        watched.register(channel, 0)
        while not watched.poll(_LOOKS_EACH if most else None):
            if most and _data() > most:
                os.write(2, b"it takes more than %d MiB of memory\n" % (most // 2**20))
                os._exit(5)
        os._exit(4)

    # The pipe also tells of a parent that ended before the kernel was asked.
    _thread.start_new_thread(watch, ())


def _bound_memory() -> int:
    """Bound the data of this process; return the bound in bytes, 0 where the kernel has none."""
    if sys.platform != "linux":
        return 0
    import resource

    limits = resource.getrlimit(resource.RLIMIT_DATA)
    bound = min(each for each in (*limits, _BOUND) if each != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_DATA, (bound, limits[1]))
    return bound


def _data() -> int:
    """Return how many bytes of private data this process has, as the bound counts them."""
    try:
        with open("/proc/self/statm", "rb") as facts:
            return int(facts.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0  # the code has every descriptor open, or there is no such file system


def _main(expected: str, *arguments: str) -> int:
    channel = os.dup(1)
    os.dup2(2, 1)
    _watch(channel)
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
