"""A run's id as a person types it: the whole id, or the first characters of it.

Source: spec/converge.md §2.5 (run id abbreviation).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jr2 import errors, names

from . import again
from . import client as api

if TYPE_CHECKING:
    from .output import Output
    from .target import Link

_WHOLE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SHORTEST = 4


def whole(link: Link, out: Output, typed: str) -> str:
    """Return the whole id of the run that `typed` names.

    Args:
        link: the way to the Orchestrator, which is asked for a part of an id alone.
        out: where it is said that an answer was lost.
        typed: the id, or its first characters.

    Raises:
        Usage: fewer than four characters.
        StepFailed: no run, more than one, or an Orchestrator that cannot look one up.
    """
    if _WHOLE.fullmatch(typed):
        return typed
    if len(typed) < _SHORTEST:
        raise errors.Usage(
            f'"{typed}" is too short for a run id — give at least {_SHORTEST} characters'
        )
    try:
        found = again.read(link, out, lambda client: client.resolve(typed))
    except api.ApiFailed as error:
        if error.status != 404:
            raise
        raise errors.StepFailed(
            f"this instance cannot look up a run by the start of its id (jr2 {names.KIT_VERSION} "
            "can) — give the whole id, or run `jr2 up`"
        ) from error
    if not found.run_ids:
        raise no_run(typed)
    if len(found.run_ids) > 1:
        listed = "".join(f"\n  {run_id}" for run_id in found.run_ids)
        more = "\n  …" if found.truncated else ""
        raise errors.StepFailed(f'"{typed}" is the start of more than one run:{listed}{more}')
    return found.run_ids[0]


def no_run(typed: str) -> errors.StepFailed:
    """Build the error for a run that is not there."""
    return errors.StepFailed(f'no run "{typed}"')
