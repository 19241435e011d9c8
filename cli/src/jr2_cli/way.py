"""To open the way to an Orchestrator in a cluster, and to say why it does not open.

What kubectl says of a forward that fails is seldom why: a namespace that is being deleted and an
Orchestrator that does not start look the same to it, or it says nothing at all. So after a few
seconds, and whenever it ends, the cluster itself is asked.

Source: spec/converge.md §2.3, design §5.7.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .port_forward import ForwardFailed, PortForward
    from .target import ClusterTarget

_OPEN_SECONDS: Final = (3.0, 27.0)
"""How long each kubectl has to announce its port; a slow one gets the rest at once."""
_ANSWER_SECONDS: Final = (3.0, 9.0, 18.0)
"""How long the Orchestrator has to answer, before each look at the cluster."""


def open_to(cluster: ClusterTarget) -> PortForward:
    """Open a port-forward to the Orchestrator.

    Raises:
        NotDeployed: the Instance is not there, or is being deleted.
        ForwardFailed: kubectl ended, or announced no port in time.
    """
    from .port_forward import ForwardFailed

    *first, last = _OPEN_SECONDS
    for within in first:
        until = time.monotonic() + within
        try:
            return cluster.open_forward(within)
        except ForwardFailed as failure:
            why = explained(cluster, failure)
            if time.monotonic() < until:
                raise why from failure
    try:
        return cluster.open_forward(last)
    except ForwardFailed as failure:
        raise explained(cluster, failure) from failure


def wait_until_it_answers(
    cluster: ClusterTarget, forward: PortForward, signing_key: str | None
) -> None:
    """Wait until the Orchestrator answers; after an error of kubectl this is not for long.

    Args:
        cluster: the Instance.
        forward: the open forward to it.
        signing_key: what the answer must be signed with; `None` when no token is sent.

    Raises:
        NotTheInstance: something else answers through the port.
        NotDeployed: the Instance is not there, or is being deleted.
        ForwardFailed: kubectl ended or said an error, or nothing answered in time.
    """
    from .port_forward import ForwardFailed

    for within in _ANSWER_SECONDS:
        try:
            forward.wait_until_it_answers(within, signing_key=signing_key)
            return
        except ForwardFailed as failure:
            why = explained(cluster, failure)
            if within == _ANSWER_SECONDS[-1] or not forward.alive or forward.complained:
                raise why from failure


def explained(cluster: ClusterTarget, failure: ForwardFailed) -> ForwardFailed:
    """Return the failure of a forward with what the cluster says of the Orchestrator.

    Raises:
        NotDeployed: the Instance is not there, or is being deleted; to try again is of no use.
    """
    from .port_forward import ForwardFailed
    from .target import Unreadable

    why = None
    # Who may not read the one may read the other; what kubectl said is said in any case.
    with contextlib.suppress(Unreadable):
        cluster.check_namespace()
    with contextlib.suppress(Unreadable):
        why = cluster.unready()
    return failure if why is None else ForwardFailed(f"{why}\n  {failure}")
