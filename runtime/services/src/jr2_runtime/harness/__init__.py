"""The Harness: the server for the Turns of Agents, in each Sandbox and as the Instance Harness.

This first form starts, answers its health check, and opens to nobody but the Orchestrator. It holds
no conversation and runs no Turn yet, and says so to each that it is asked for.

Source: seed 004 (The Harness), spec/runtime.md §2.2.
"""

from __future__ import annotations

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM; return the exit code."""
    from . import program

    return program.run()
