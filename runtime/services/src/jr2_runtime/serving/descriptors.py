"""How many connections fit the descriptors that a process may have.

A container's soft limit is often 1024, whatever the node has: a few hundred peers that only connect
would then keep the store and the worker's socket from being opened. So the soft limit is raised to
the hard one, and connections leave some for everything else.

Source: design §6.3, ADR-0156.
"""

from __future__ import annotations

import contextlib
import resource
from typing import Final

RESERVED: Final = 256
"""Descriptors for the store, its copies, the worker, files that are received, and the rest."""
ENOUGH: Final = 65_536
"""More are not asked for: some programs walk through all that they may have."""


def connections_that_fit(most: int) -> int:
    """Raise the limit of this process as far as it may, and return how many connections fit it.

    Args:
        most: connections that are wanted; never more than these are returned.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    aim = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < aim:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (aim, hard))
            soft = aim
    if soft == resource.RLIM_INFINITY:
        return most
    return min(most, max(soft - RESERVED, soft // 2))
