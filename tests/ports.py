"""Ports for programs that must be told one before they listen on it.

A port that the kernel chose is one of those that it also gives to connections: on a busy machine
somebody else's connection has it by the time that the program listens. These lie below, and apart
from the node ports and host ports of a cluster on this machine.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
from typing import Final

_FIRST: Final = 11_000
_COUNT: Final = 9_000


def free_ports(count: int) -> list[int]:
    """Return different ports of 127.0.0.1 on which nothing listens."""
    with contextlib.ExitStack() as held:
        found: list[int] = []
        while len(found) < count:
            one = held.enter_context(socket.socket())
            port = _FIRST + secrets.randbelow(_COUNT)
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", port))
                found.append(port)
        return found


def free_port() -> int:
    """Return one port of 127.0.0.1 on which nothing listens."""
    return free_ports(1)[0]
