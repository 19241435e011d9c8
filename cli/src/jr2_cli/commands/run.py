"""`jr2 run`: start a run of a Workflow and follow it.

Source: spec/converge.md §2.5.
"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from .. import follow, json_input, once, output
from ..target import Target, connect


def run(
    workflow: str,
    /,
    *,
    input: Annotated[str, Parameter(allow_leading_hyphen=True)] = "{}",
    detach: Annotated[bool, Parameter(negative="")] = False,
    target: Target = Target(),  # noqa: B008 (frozen)
) -> int:
    """Start a run of a Workflow, and follow it until it settles.

    What happens is written to stderr as it happens. The status of the settled run is written to
    stdout as JSON, and the exit code is 1 when the run ended in an error. A run is durable: when
    this command ends, the run goes on.

    Args:
        workflow: the name of the Workflow, a file of `workflows/` without `.py`.
        input: the input of the run, a JSON object; `@<file>` reads it from a file, `-` from
            stdin.
        detach: print the run's id as JSON and leave.
        target: the options that name an Orchestrator.
    """
    value = json_input.parse(input)
    out = output.current()
    with connect(target, out) as link:
        started = once.send(link, out, lambda client, key: client.start_run(workflow, value, key))
        if detach:
            out.result({"runId": started.run_id})
            return 0
        out.line(f"run {started.run_id} ({workflow}) — attached", code="attached")
        status = follow.until_settled(link, started.run_id, out)
    out.result(status)
    return 1 if status.get("status") == "error" else 0
