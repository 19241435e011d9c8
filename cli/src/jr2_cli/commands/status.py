"""`jr2 status`: one run, or the Assemblies that the Instance holds.

Source: seed 000 (The Assembly), spec/converge.md §2.5.
"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from jr2 import names, wire

from .. import again, output, run_ids, table
from ..client import ApiFailed
from ..target import Target, connect


def status(
    run_id: str | None = None,
    /,
    *,
    json: Annotated[bool, Parameter(negative="")] = False,
    target: Target = Target(),  # noqa: B008 (frozen)
) -> int:
    """Show a run, or with no run the current Assembly and each one that a live run holds.

    A run is shown as JSON with its open Gates, also when it has settled.

    Args:
        run_id: the run's id, or its first four characters or more.
        json: show the Assemblies as JSON; a run is shown so in any case.
        target: the options that name an Orchestrator.
    """
    out = output.current()
    with connect(target, out) as link:
        if run_id is not None:
            whole = run_ids.whole(link, out, run_id)
            try:
                out.result(again.read(link, out, lambda client: client.run(whole)))
            except ApiFailed as error:
                if error.status != 404:
                    raise
                raise run_ids.no_run(run_id) from error
            return 0
        answer = again.read(link, out, lambda client: client.assemblies())
        held = link.client.parse(wire.Assemblies, answer, "/assemblies")
    if json:
        out.result(answer)
    else:
        out.text(rows(held))
    return 0


def rows(held: wire.Assemblies) -> str:
    """Draw the Assemblies as a table, the current one first, and then each run that is stuck."""
    if not held.assemblies:
        return "no Assembly is published"
    lines = [f"run {run}: stuck: no next action" for run in held.stuck]
    return "\n".join([_table(held), *lines])


def _table(held: wire.Assemblies) -> str:
    ordered = sorted(held.assemblies, key=lambda one: (not one.current, one.hash))
    return table.draw(
        ("ASSEMBLY", "KIT", "CURRENT", "LIVE RUNS"),
        [
            (
                one.hash[: names.SHORT_HASH],
                one.kit_version,
                "yes" if one.current else "no",
                str(len(one.runs)),
            )
            for one in ordered
        ],
    )
