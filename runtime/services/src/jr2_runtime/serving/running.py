"""Serve an app until the pod is told to end: SIGTERM and SIGINT end the server, and then the program.

Source: spec/runtime.md §1.1 (shutdown).
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable

from starlette.types import ASGIApp

from jr2 import names

from .server import Server, listen

log = logging.getLogger("jr2.serving")


async def serve_until_told(
    app: ASGIApp, *, host: str, port: int, before_exit: Callable[[], None] = lambda: None
) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        app: what answers.
        host: the address; empty means every address.
        port: the port; 0 takes a free one, which the log names.
        before_exit: is called before the connections are closed.

    Raises:
        OSError: the address cannot be used.
    """
    listener = listen(host, port)
    server = Server(app, before_exit)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, server.handle_exit, number)
    log.info("listening", extra={"port": listener.getsockname()[1], "version": names.KIT_VERSION})
    await server.serve(sockets=[listener])
    log.info("stopped")
