"""The program `jr2-harness`: read the settings, serve, end.

Source: spec/runtime.md §2.3.
"""

from __future__ import annotations

import asyncio
import logging
import os

from ..serving import logs, serve_until_told
from .app import build_app
from .settings import BadSettings, read_settings

log = logging.getLogger("jr2.harness")


def run() -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    logs.install()
    # What an Agent's tools write is for the whole work group.
    os.umask(0o002)
    try:
        settings = read_settings(os.environ)
        asyncio.run(serve_until_told(build_app(settings), host="", port=settings.port))
    except (BadSettings, OSError) as failed:
        log.error("the Harness cannot start", extra={"reason": str(failed)})
        return 1
    return 0
