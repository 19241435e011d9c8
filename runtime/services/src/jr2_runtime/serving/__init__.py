"""What every program of a pod that serves HTTP shares: the server in its own loop, and the logs.

It stands beside the programs and below each of them, so an image that leaves a program out still
has it.
"""

from __future__ import annotations

from . import answers, logs
from .running import serve_until_told
from .server import Server, listen

__all__ = ["Server", "answers", "listen", "logs", "serve_until_told"]
