"""The operator: one process for the cluster that watches the Sandboxes and Repos of every Instance.

It keeps both kinds in its index and answers for it on its health check. It puts no finalizer on an
object, writes no annotation and posts no event, so an object can be deleted while it is away.

Source: design §6.4, spec/converge.md §6.2.
"""

from __future__ import annotations

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the operator until SIGTERM; return the exit code."""
    from . import program

    return program.run(arguments)
