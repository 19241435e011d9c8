"""What does not heal by waiting: an image, a configuration, a crash, a volume, a pod never made.

A trouble must stand in several observations in a row before it ends a rollout, so that a hiccup
between two of them does not fail a converge. All functions are pure.

Source: field case 1, spec/converge.md §6.3, design §5.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from . import events, pods, revisions

PULL_OBSERVATIONS: Final = 3
CONFIG_OBSERVATIONS: Final = 3
MOUNT_OBSERVATIONS: Final = 5
"""The kubelet tries a mount again after 0.5, 1, 2 and 4 seconds."""
NO_POD_OBSERVATIONS: Final = 5
CRASHES: Final = 2
"""How often a container was started again before its crash loop counts as one."""

MOUNT_REASON: Final = "FailedMount"
NO_POD_REASON: Final = "FailedCreate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One thing that does not heal by waiting.

    Args:
        place: which pod and container, and what of it: the same while the trouble lasts.
        reason: its word in the error, such as `ImagePullBackOff`.
        observations: how often in a row it must be seen.
        since: since when its pod or its revision stands, as the API writes times.
    """

    place: str
    reason: str
    observations: int
    since: str


def of_pods(made: Sequence[pods.Pod], said: Sequence[events.Event]) -> list[Trouble]:
    """Return the troubles of pods, in the order of the pods and of their containers."""
    found: list[Trouble] = []
    for pod in made:
        name = pods.name_of(pod)
        since = str(pod.get("metadata", {}).get("creationTimestamp") or "")
        for container in pods.containers(pod):
            what, observations = _of_container(container)
            if what:
                found.append(
                    Trouble(
                        place=f"{name}/{container.name} {what}",
                        reason=pods.CRASH_REASON if what == "crash" else container.reason,
                        observations=observations,
                        since=since,
                    )
                )
        if events.failed_mount(said, pod):
            found.append(
                Trouble(
                    place=f"{name} mount",
                    reason=MOUNT_REASON,
                    observations=MOUNT_OBSERVATIONS,
                    since=since,
                )
            )
    return found


def refusal(
    workload: Mapping[str, Any] | None,
    revision: Mapping[str, Any] | None,
    made: int,
    said: Sequence[events.Event],
) -> events.Refused | None:
    """Return why no further pod of the newest revision is made; `None` when none is missing.

    Args:
        workload: the Deployment, DaemonSet or StatefulSet.
        revision: what stands for its newest revision.
        made: how many pods of that revision there are.
        said: the events of the namespace.
    """
    if workload is None or revision is None or made >= revisions.wanted_pods(workload):
        return None
    if workload.get("kind") != "Deployment":
        return events.refused_creation(said, workload)
    for item in (revision, workload):
        for condition in (item.get("status") or {}).get("conditions") or []:
            if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
                reason, text = condition.get("reason") or "", condition.get("message") or ""
                return events.Refused(
                    text=f"{reason}: {text}" if reason else str(text),
                    since=str(condition.get("lastTransitionTime") or ""),
                )
    return None


def of_refusal(refused: events.Refused) -> Trouble:
    """Return a pod that is never made as a trouble."""
    return Trouble(
        place="no pod",
        reason=NO_POD_REASON,
        observations=NO_POD_OBSERVATIONS,
        since=refused.since,
    )


def _of_container(container: pods.ContainerState) -> tuple[str, int]:
    """Return what is wrong with a container and how often it must be seen; empty for nothing."""
    if container.reason in pods.PULL_REASONS:
        return "pull", PULL_OBSERVATIONS
    if container.reason in pods.CONFIG_REASONS:
        return "config", CONFIG_OBSERVATIONS
    if container.is_crash_loop and container.restarts >= CRASHES:
        return "crash", 1
    return "", 0
