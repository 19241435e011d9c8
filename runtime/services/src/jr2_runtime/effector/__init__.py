"""The Effector: runs Effects in a container in which an Agent executes nothing.

This first form starts, answers its health check, takes only what the Orchestrator has signed, and
signs each answer. It runs no Effect yet, and its signed answer says so.

Source: seed 004 (The Effector), spec/runtime.md §4.
"""

from __future__ import annotations

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM; return the exit code."""
    from . import program

    return program.run()
