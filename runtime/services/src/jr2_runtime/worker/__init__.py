"""The worker container: one process for each Assembly, and nothing that user code could misuse.

The supervisor accepts a connection of the Orchestrator, starts one Assembly process on it, and
reaps what ends. It holds no secret, no token and no record of any run.

Source: design §4.4.
"""

from __future__ import annotations

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the supervisor until SIGTERM; return the exit code."""
    from . import program

    return program.run(arguments)
