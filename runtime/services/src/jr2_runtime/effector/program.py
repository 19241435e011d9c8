"""The program `jr2-effector`: read the settings, serve, end.

Source: spec/runtime.md §4.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
from typing import Final

from ..serving import logs, serve_until_told
from .app import build_app
from .settings import BadSettings, read_settings

_PR_SET_DUMPABLE: Final = 4

log = logging.getLogger("jr2.effector")


def run() -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    logs.install()
    os.umask(0o077)
    # Nobody reads this process's memory, and it leaves no core file.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    try:
        settings = read_settings(os.environ)
        asyncio.run(serve_until_told(build_app(settings), host="", port=settings.port))
    except (BadSettings, OSError) as failed:
        log.error("the Effector cannot start", extra={"reason": str(failed)})
        return 1
    return 0
