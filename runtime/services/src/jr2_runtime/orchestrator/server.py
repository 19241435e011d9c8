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

GRACE_SECONDS: Final = 4


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; an empty host means every address of both families."""
    if host:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(
                ("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024
            )
        except OSError:
            pass  # a kernel without IPv6 addresses
    return socket.create_server(("0.0.0.0", port), backlog=1024)  # noqa: S104 - the pod's port


class Server(uvicorn.Server):
    """A uvicorn server that ends the feeds before it waits for its connections."""

    def __init__(self, app: ASGIApp, before_exit: Callable[[], None]) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._before_exit = before_exit

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the program, which calls `handle_exit`."""
        yield

    def handle_exit(self, sig: int, frame: FrameType | None = None) -> None:
        """End the feeds, then the server."""
        self._before_exit()
        super().handle_exit(sig, frame)
