"""The Repo cache: on each Sandbox node, the clones from which the Sandboxes there take their Repos.

This first form follows the Repos of its Instance, serves its health check, and says on each Repo
that this node keeps no clone of it, and why. It asks no git host for anything yet.

Source: seed 004 (The Repo cache), spec/runtime.md §6, spec/converge.md §12.3.
"""

from __future__ import annotations

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGTERM; return the exit code."""
    from . import program

    return program.run()
