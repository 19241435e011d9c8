"""`jr2 runs`: the live runs.

Source: spec/converge.md §2.5.
"""

from __future__ import annotations

from .. import again, output
from ..target import Target, connect


def runs(
    *,
    target: Target = Target(),  # noqa: B008 (frozen)
) -> int:
    """List the live runs as JSON, those of an older Assembly too.

    Args:
        target: the options that name an Orchestrator.
    """
    out = output.current()
    with connect(target, out) as link:
        live = again.read(link, out, lambda client: client.live_runs())
    out.result(live)
    return 0
