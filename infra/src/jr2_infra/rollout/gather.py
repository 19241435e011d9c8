"""Read what is known about a failed rollout; each read is tried, and a failure becomes a note.

Source: spec/converge.md §6.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..api import Api, ApiError
from ..closed_list import EVENT, NODE, POD
from . import pods
from .decide import Observation, Progress, Workload
from .evidence import (
    SHOWN_LOG_LINES,
    Evidence,
    LogTail,
    PodEvidence,
    chosen_pods,
    last_events,
    no_pod_notes,
)

if TYPE_CHECKING:
    from collections.abc import Callable

LABEL_ARCHITECTURE = "kubernetes.io/arch"


def gather(api: Api, workload: Workload, progress: Progress, seen: Observation) -> Evidence:
    """Read events, logs and nodes of the pods that a failed rollout left.

    Args:
        api: the API server.
        workload: what was rolled out.
        progress: what the observations showed.
        seen: the last observation.
    """
    notes: list[str] = []
    replica_set = pods.newest_replica_set(seen.deployment, seen.replica_sets)
    made = pods.of_revision(seen.pods, replica_set)
    shown, hidden = chosen_pods(made)
    events = _tried(
        lambda: api.objects(EVENT, workload.namespace), [], "the events cannot be read", notes
    )
    if not made:
        terminating = sum(pods.is_terminating(pod) for pod in seen.pods)
        failure = progress.replica_failure or _event_of(events, replica_set)
        notes += no_pod_notes(
            workload, matching=len(seen.pods), terminating=terminating, failure=failure
        )
    if hidden:
        notes.append(f"{hidden} further pod(s) not shown")
    architectures: dict[str, str] = {}
    items = tuple(
        PodEvidence(
            pod=pod,
            architecture=_architecture(api, pod, architectures, notes),
            events=last_events(events, pods.name_of(pod), pod["metadata"].get("uid", "")),
            log=_log(api, workload, pod, notes),
            pull_messages={
                container: text
                for (name, container), text in progress.pull_messages.items()
                if name == pods.name_of(pod)
            },
        )
        for pod in shown
    )
    names_made = {pods.name_of(pod) for pod in made}
    serving = next(
        (
            pods.name_of(pod)
            for pod in seen.pods
            if pods.name_of(pod) not in names_made
            and pods.is_ready(pod)
            and not pods.is_terminating(pod)
        ),
        "",
    )
    return Evidence(workload=workload, shown=items, notes=tuple(notes), still_serving=serving)


def _event_of(events: Sequence[Mapping[str, Any]], replica_set: Mapping[str, Any] | None) -> str:
    """Return why a ReplicaSet made no pod, as its last warning says."""
    if replica_set is None:
        return ""
    warnings = [
        event
        for event in last_events(events, pods.name_of(replica_set))
        if event.get("type") == "Warning"
    ]
    if not warnings:
        return ""
    return f"{warnings[-1].get('reason')}: {warnings[-1].get('message')}"


def _architecture(api: Api, pod: Mapping[str, Any], known: dict[str, str], notes: list[str]) -> str:
    node = str((pod.get("spec") or {}).get("nodeName") or "")
    if node and node not in known:
        found = _tried(
            lambda: api.get(NODE.path(name=node)), None, f"node {node} cannot be read", notes
        )
        labels = ((found or {}).get("metadata") or {}).get("labels") or {}
        known[node] = str(labels.get(LABEL_ARCHITECTURE, ""))
    return known.get(node, "")


def _log(api: Api, workload: Workload, pod: Mapping[str, Any], notes: list[str]) -> LogTail | None:
    container = pods.first_not_ready(pod)
    if container is None or container.reason in pods.PULL_REASONS | pods.CONFIG_REASONS:
        return None
    path = POD.path(workload.namespace, pods.name_of(pod)) + "/log"
    for previous in (False, True):
        if previous and not container.restarts:
            continue
        query = {"container": container.name, "tailLines": str(SHOWN_LOG_LINES)}
        if previous:
            query["previous"] = "true"
        try:
            text = api.text(path, **query)
        except ApiError:
            # The kubelet answers 400 for a log that does not exist yet.
            continue
        lines = tuple((text or "").rstrip().splitlines())
        if lines:
            return LogTail(container=container.name, previous=previous, lines=lines)
    return None


def _tried(read: Callable[[], Any], otherwise: Any, what: str, notes: list[str]) -> Any:
    try:
        return read()
    except ApiError as error:
        notes.append(f"{what}: {error.message}")
        return otherwise
