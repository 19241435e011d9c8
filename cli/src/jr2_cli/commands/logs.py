"""`jr2 logs`: where a run stands, and what it does until it settles.

Source: spec/converge.md §2.5.
"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from .. import again, output, run_ids
from .. import follow as following
from ..client import ApiFailed
from ..target import Target, connect


def logs(
    run_id: str,
    /,
    *,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"], negative="")] = False,
    target: Target = Target(),  # noqa: B008 (frozen)
) -> int:
    """Show where a run stands, or follow it until it settles.

    The status is written to stdout as JSON: where the run stands now, or with `--follow` how it
    settled.

    Args:
        run_id: the run's id, or its first four characters or more.
        follow: write what happens to stderr as it happens, until the run settles.
        target: the options that name an Orchestrator.
    """
    out = output.current()
    with connect(target, out) as link:
        whole = run_ids.whole(link, out, run_id)
        try:
            if follow:
                status = following.until_settled(link, whole, out)
            else:
                status = again.read(link, out, lambda client: following.first_status(client, whole))
        except ApiFailed as error:
            if error.status != 404:
                raise
            raise run_ids.no_run(run_id) from error
    out.result(status)
    return 0
