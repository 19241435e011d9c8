"""The program `jr2-worker`: read the settings, serve, answer with an exit code."""

from __future__ import annotations

import asyncio
import os
import sys

from .settings import read_settings
from .supervisor import Supervisor


def run(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    settings = read_settings(sys.argv[1:] if arguments is None else arguments, os.environ)

    async def serve() -> None:
        await Supervisor(settings, is_program=True).serve()

    asyncio.run(serve())
    return 0
