"""Start a rollout anew whose last try failed, so that it is not judged by what that try left.

After a failure the kubelet and the controllers wait before they try again: a pull up to 5 minutes,
a pod that a quota refused up to 17. When the cause was taken away in between and nothing of the
object changed, `jr2 up` would meet the old failure and stop. It does what `kubectl rollout restart`
does instead, once for each wait: a new revision is tried at once. What serves still serves, as in
each rollout. What stands since before this run began is of an earlier one, however young it is: a
run begins before it applies anything.

Source: field cases (a second run after the fix converges with no manual clean-up), ADR-0151.
"""

from __future__ import annotations

from typing import Final

from .. import closed_list
from ..api import Api
from ..derived.more import RESTARTED_AT
from .workload import Workload

MANAGER: Final = "kubectl-rollout"
"""The field manager under which kubectl writes the same annotation."""
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"


def moment(api: Api) -> str:
    """Return this moment by the clock of the API server, which also says when a pod was made.

    Raises:
        ApiError: the server refused, or says no time.
    """
    return api.server_time().strftime(_TIME)


def restart(api: Api, workload: Workload) -> None:
    """Ask for a new revision of a workload, as `kubectl rollout restart` does."""
    template = {"metadata": {"annotations": {RESTARTED_AT: moment(api)}}}
    api.merge_patch(
        closed_list.kind_of(workload.kind).path(workload.namespace, workload.name),
        {"spec": {"template": template}},
        manager=MANAGER,
    )


def restart_line(workload: Workload, reason: str) -> str:
    """Return the line that says why the pods of a workload are started again."""
    return f"{workload.layer}: an earlier rollout ended with {reason} — starting its pods again"
