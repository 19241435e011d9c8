"""Judge a rollout from one observation to the next: done, still waiting, or never.

A rollout fails at once for what does not heal by waiting: an image that cannot be pulled, a
container that cannot be configured, a container that starts and exits again and again, and a
revision of which no pod is made. Each must stand in several observations in a row, so that a
hiccup between two of them does not fail a converge. All else waits for the limit.

The functions are pure: an `Observation` goes in with the `Progress` so far, a `Verdict` comes out.

Source: field case 1, spec/converge.md §6.3, design §5.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from . import pods

PULL_OBSERVATIONS: Final = 3
CONFIG_OBSERVATIONS: Final = 3
NO_POD_OBSERVATIONS: Final = 5
CRASHES: Final = 2
"""How often a container was started again before its crash loop counts as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is rolled out.

    Args:
        layer: the word of the lines, such as `orchestrator`.
        name: the Deployment, such as `jr2-orchestrator`.
        namespace: where it lives.
        selector: the labels of its pods, `key=value`.
        image: the image that each container must run.
        digest: the digest of that image's manifest, where it is known.
        config: the digest of that image's config, where it is known.
    """

    layer: str
    name: str
    namespace: str
    selector: str
    image: str
    digest: str | None = None
    config: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one look at the cluster showed.

    Args:
        deployment: the Deployment, or `None`.
        replica_sets: the ReplicaSets of its namespace.
        pods: the pods that match its selector, terminating ones too.
    """

    deployment: Mapping[str, Any] | None
    replica_sets: Sequence[Mapping[str, Any]] = ()
    pods: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What earlier observations showed.

    Args:
        streaks: how often in a row each trouble was seen; its key names container and kind.
        pull_messages: the longest message of a failed pull, by pod and container. The kubelet
            alternates it with a short one.
        replica_failure: why the ReplicaSet made no pod.
    """

    streaks: Mapping[str, int] = field(default_factory=dict)
    pull_messages: Mapping[tuple[str, str], str] = field(default_factory=dict)
    replica_failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What an observation means.

    Args:
        state: `done`, `waiting` or `failed`.
        reason: for `failed`, the word of what does not heal; for `waiting`, what is waited for.
        restarted: for `done`, the containers that were started again on the way.
    """

    state: Literal["done", "waiting", "failed"]
    reason: str = ""
    restarted: tuple[str, ...] = ()


def is_complete(deployment: Mapping[str, Any] | None) -> bool:
    """Say whether a Deployment runs its newest revision and nothing else, as kubectl judges it."""
    if deployment is None:
        return False
    status = deployment.get("status") or {}
    wanted = int((deployment.get("spec") or {}).get("replicas", 1))
    updated = int(status.get("updatedReplicas") or 0)
    return (
        int(status.get("observedGeneration") or 0)
        >= int(deployment.get("metadata", {}).get("generation") or 0)
        and updated >= wanted
        and int(status.get("replicas") or 0) <= updated
        and int(status.get("availableReplicas") or 0) >= updated
    )


def judge(progress: Progress, seen: Observation) -> tuple[Progress, Verdict]:
    """Judge one observation.

    Args:
        progress: what the observations before it showed.
        seen: the observation.
    """
    replica_set = pods.newest_replica_set(seen.deployment, seen.replica_sets)
    made = pods.of_revision(seen.pods, replica_set)
    if is_complete(seen.deployment):
        return progress, Verdict(state="done", restarted=_restarted(made))
    troubles = _troubles(made)
    failure = _replica_failure(seen.deployment) if not made else ""
    if failure:
        troubles["no pod"] = ("FailedCreate", NO_POD_OBSERVATIONS)
    streaks = {key: progress.streaks.get(key, 0) + 1 for key in troubles}
    after = Progress(
        streaks=streaks,
        pull_messages=_pull_messages(progress, made),
        replica_failure=failure,
    )
    for key, (reason, limit) in troubles.items():
        if streaks[key] >= limit:
            return after, Verdict(state="failed", reason=reason)
    return after, Verdict(state="waiting", reason=_waits_for(made))


def _troubles(made: Sequence[pods.Pod]) -> dict[str, tuple[str, int]]:
    """Return what may not heal, by a key that is the same while it lasts."""
    found: dict[str, tuple[str, int]] = {}
    for pod in made:
        for container in pods.containers(pod):
            place = f"{pods.name_of(pod)}/{container.name}"
            if container.reason in pods.PULL_REASONS:
                found[f"{place} pull"] = (container.reason, PULL_OBSERVATIONS)
            elif container.reason in pods.CONFIG_REASONS:
                found[f"{place} config"] = (container.reason, CONFIG_OBSERVATIONS)
            elif container.reason == pods.CRASH_REASON and container.restarts >= CRASHES:
                found[f"{place} crash"] = (container.reason, 1)
    return found


def _replica_failure(deployment: Mapping[str, Any] | None) -> str:
    for condition in ((deployment or {}).get("status") or {}).get("conditions") or []:
        if condition.get("type") == "ReplicaFailure" and condition.get("status") == "True":
            reason, message = condition.get("reason") or "", condition.get("message") or ""
            return f"{reason}: {message}" if reason else str(message)
    return ""


def _pull_messages(progress: Progress, made: Sequence[pods.Pod]) -> dict[tuple[str, str], str]:
    longest = dict(progress.pull_messages)
    for pod in made:
        for container in pods.containers(pod):
            key = (pods.name_of(pod), container.name)
            if container.reason in pods.PULL_REASONS and len(container.message) > len(
                longest.get(key, "")
            ):
                longest[key] = container.message
    return longest


def _restarted(made: Sequence[pods.Pod]) -> tuple[str, ...]:
    return tuple(
        f"container {container.name} of pod {pods.name_of(pod)} restarted "
        + ("once" if container.restarts == 1 else f"{container.restarts} times")
        for pod in made
        for container in pods.containers(pod)
        if container.restarts
    )


def _waits_for(made: Sequence[pods.Pod]) -> str:
    """Return one short phrase for a progress line."""
    if not made:
        return "no pod yet"
    for pod in made:
        container = pods.first_not_ready(pod)
        if container is not None:
            return f"{pods.name_of(pod)}: {container.name} {container.reason}"
    return "the pods are ready"
