"""`jr2 send`: answer a Gate of a run, or cancel the run.

Source: spec/converge.md §2.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from jr2 import errors

from .. import again, json_input, once, output, run_ids
from .. import follow as following
from ..client import ApiFailed
from ..target import Target, connect

if TYPE_CHECKING:
    from ..output import Output
    from ..target import Link

_CANCEL = "CANCEL"


def send(
    run_id: str,
    /,
    *,
    event: str,
    gate: str | None = None,
    input: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    target: Target = Target(),  # noqa: B008 (frozen)
) -> int:
    """Answer an open Gate of a run, or cancel the run.

    With `--gate` the event goes to that Gate, under its own name. Without it, the one event that a
    run takes is CANCEL; one that has settled already stays as it is.

    Args:
        run_id: the run's id, or its first four characters or more.
        event: the name of the event.
        gate: the Gate, as `jr2 status <run>` shows it under `gates`.
        input: what the event carries, a JSON object; `@<file>` reads it from a file, `-` from
            stdin.
        target: the options that name an Orchestrator.
    """
    body = _body(event, gate, input)
    out = output.current()
    with connect(target, out) as link:
        whole = run_ids.whole(link, out, run_id)
        if gate is None:
            _cancel(link, whole, run_id, out)
        else:
            once.send(link, out, lambda client, key: client.answer_gate(whole, gate, body, key))
            out.line(f'delivered {event} to gate "{gate}" on {whole}', code="delivered")
    return 0


def _cancel(link: Link, whole: str, typed: str, out: Output) -> None:
    """Cancel a run; the route takes it silently for one that has settled, so that is asked before.

    Raises:
        StepFailed: there is no such run.
    """
    try:
        status = again.read(link, out, lambda client: client.run(whole)).get("status")
    except ApiFailed as error:
        if error.status != 404:
            raise
        raise run_ids.no_run(typed) from error
    if status != following.LIVE:
        out.line(f"run {whole} had settled already ({status})", code="settled")
        return
    once.send(link, out, lambda client, key: client.cancel(whole, key))
    out.line(f"sent {_CANCEL} to {whole}", code="sent")


def _body(event: str, gate: str | None, text: str | None) -> dict[str, object]:
    """Build the event from the options, before anything is sent.

    Raises:
        Usage: the options do not fit together.
    """
    if gate is None:
        if event.upper() != _CANCEL:
            raise errors.Usage(
                f'"{event}" is no event of a run: give --gate for an event of a Gate, or '
                f"--event {_CANCEL}"
            )
        if text is not None:
            raise errors.Usage(f"{_CANCEL} carries no --input")
        return {}
    value = json_input.parse("{}" if text is None else text)
    if "type" in value:
        raise errors.Usage('--input may not hold "type": --event gives it')
    return {"type": event, **value}
