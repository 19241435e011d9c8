"""The child process of the walk: a script for the Instance's interpreter, not a module of ours.

    python -I walk_child.py <the command's jr2> <folder> all|config <variable>…

It first keeps its standard output for the report alone: what the folder's code prints goes to
standard error. Then it hands over to the `jr2` that this interpreter imports, which must be the
command's.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys


def _main(expected: str, *arguments: str) -> int:
    channel = os.dup(1)
    os.dup2(2, 1)
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
