"""uvicorn in the program's own loop, with an end that no feed can hold up.

At SIGTERM every feed gets its last frame first; then the listener closes, and what is still open
after five seconds is cut.

Source: spec/runtime.md §1.1 and §1.5.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from .connections import UNSENT, Connection
from .descriptors import connections_that_fit
from .target import OriginForm

GRACE_SECONDS: Final = 4


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; an empty host means every address of both families.

    Raises:
        OSError: the address is in use, or is none of this machine's.
    """
    if host:
        return _listen(socket.AF_INET6 if ":" in host else socket.AF_INET, host, port)
    if socket.has_dualstack_ipv6():
        # A kernel without IPv6 addresses has the module, but nothing to bind to.
        with contextlib.suppress(OSError):
            return _listen(socket.AF_INET6, "::", port)
    return _listen(socket.AF_INET, "0.0.0.0", port)  # noqa: S104 - the pod's port


def _listen(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    # The protocol is named, for asyncio sets TCP_NODELAY only where it is: without it each answer
    # waits 40 ms for an acknowledgement.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Each connection inherits it: a peer whose machine has gone is noticed within two minutes.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        # What a peer does not take waits where it is counted, and not in the kernel.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((host, port))
        listener.listen(1024)
    except BaseException:
        listener.close()
        raise
    return listener


class Server(uvicorn.Server):
    """A uvicorn server that ends the feeds before it waits for its connections."""

    def __init__(self, app: ASGIApp, before_exit: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                OriginForm(app),
                log_config=None,
                access_log=False,
                http=Connection,
                ws="none",
                lifespan="off",
                server_header=False,
                # Nobody stands before it who would say who asks, so nobody is believed.
                proxy_headers=False,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._before_exit = before_exit
        Connection.most = connections_that_fit(Connection.most)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the program, which calls `handle_exit`."""
        yield

    def handle_exit(self, sig: int, frame: FrameType | None = None) -> None:
        """End the feeds, then the server."""
        self._before_exit()
        super().handle_exit(sig, frame)
