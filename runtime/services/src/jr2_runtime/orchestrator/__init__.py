"""The Orchestrator: durable runs, their Gates, and the Assemblies that they run under.

No code of an Instance runs in this process. It holds the store, the routes, the timers and all
network; steps and tasks are asked of the worker over a Unix socket (`host`).

Source: design §4.3–4.5, spec/runtime.md §1.
"""

from __future__ import annotations

import gc

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the Orchestrator until SIGTERM; return the exit code."""
    # What is imported stays for good: looking for garbage in it is a tenth of a start. `serve`
    # goes on with it.
    gc.disable()
    from . import program

    return program.run(arguments)
