"""Read what a rollout is judged by, and what is known about one that failed.

A look reads no more than it must: the events only while a pod is being made or missing, the
revisions only of a kind that does not name its newest one itself. Of the evidence each read is
tried, and a failure becomes a note.

Source: spec/converge.md §6.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from .. import closed_list
from ..api import Api, ApiError
from ..closed_list import EVENT, NODE, POD
from . import events, pods, revisions
from .decide import Observation, Progress
from .evidence import (
    SHOWN_LOG_LINES,
    Evidence,
    LogTail,
    PodEvidence,
    chosen_pods,
    last_events,
    no_pod_notes,
)
from .workload import MAKERS, Workload, WorkloadKind

LABEL_ARCHITECTURE: Final = "kubernetes.io/arch"
_NO_LOG: Final = "unable to retrieve container logs for "

_REVISIONS: Final[Mapping[WorkloadKind, closed_list.Kind]] = {
    "Deployment": closed_list.REPLICA_SET,
    "DaemonSet": closed_list.CONTROLLER_REVISION,
    "StatefulSet": closed_list.CONTROLLER_REVISION,
}


def observe(api: Api, workload: Workload) -> Observation:
    """Read what a rollout is judged by.

    Raises:
        ApiError: the API server refused to show the workload, its revisions or its pods.
    """
    kind = closed_list.kind_of(workload.kind)
    live = api.get(kind.path(workload.namespace, workload.name))
    if live is not None:
        live.setdefault("kind", workload.kind)
    found = api.objects(
        _REVISIONS[workload.kind], workload.namespace, labelSelector=workload.selector
    )
    seen = Observation(
        workload=live,
        revisions=found,
        pods=api.objects(POD, workload.namespace, labelSelector=workload.selector),
    )
    if live is None or not _needs_events(seen):
        return seen
    return replace(seen, events=_tried(lambda: api.objects(EVENT, workload.namespace), [], "", []))


def gather(api: Api, workload: Workload, progress: Progress, seen: Observation) -> Evidence:
    """Read events, logs and nodes of the pods that a failed rollout left.

    Args:
        api: the API server.
        workload: what was rolled out.
        progress: what the observations showed.
        seen: the last observation.
    """
    notes: list[str] = []
    made = seen.made
    shown, hidden = chosen_pods(made)
    said = _tried(
        lambda: api.objects(EVENT, workload.namespace), [], "the events cannot be read", notes
    )
    refused = progress.refused or _refused(said, seen)
    if not made:
        notes += no_pod_notes(
            workload,
            matching=len(seen.pods),
            terminating=sum(pods.is_terminating(pod) for pod in seen.pods),
            refused=refused,
        )
    elif progress.refused:
        notes.append(f"the {MAKERS[workload.kind]} says {progress.refused}")
    if hidden:
        notes.append(f"{hidden} further pod(s) not shown")
    architectures: dict[str, str] = {}
    items = tuple(
        PodEvidence(
            pod=pod,
            architecture=_architecture(api, pod, architectures, notes),
            events=last_events(said, pods.name_of(pod), pod["metadata"].get("uid", "")),
            failed_mount=events.failed_mount(said, pod),
            log=_log(api, workload, pod),
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


def _needs_events(seen: Observation) -> bool:
    """Say whether events can tell more than the objects: a pod is being made, or is missing."""
    made = seen.made
    missing = seen.workload is not None and len(made) < revisions.wanted_pods(seen.workload)
    return missing or any(pods.is_being_made(pod) for pod in made)


def _refused(said: list[dict[str, Any]], seen: Observation) -> str:
    """Return why no pod was made, as the events of what makes the pods say."""
    maker = seen.workload
    if maker is not None and maker.get("kind") == "Deployment":
        maker = revisions.newest(maker, seen.revisions)
    found = None if maker is None else events.refused_creation(said, maker)
    return "" if found is None else found.text


def _architecture(api: Api, pod: Mapping[str, Any], known: dict[str, str], notes: list[str]) -> str:
    node = str((pod.get("spec") or {}).get("nodeName") or "")
    if node and node not in known:
        found = _tried(
            lambda: api.get(NODE.path(name=node)), None, f"node {node} cannot be read", notes
        )
        labels = ((found or {}).get("metadata") or {}).get("labels") or {}
        known[node] = str(labels.get(LABEL_ARCHITECTURE, ""))
    return known.get(node, "")


def _log(api: Api, workload: Workload, pod: Mapping[str, Any]) -> LogTail | None:
    container = pods.spokesman(pod)
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
        # Where the log is gone the kubelet says so in its place, with a status of 200.
        if lines and not lines[0].startswith(_NO_LOG):
            return LogTail(container=container.name, previous=previous, lines=lines)
    return None


def _tried(read: Callable[[], Any], otherwise: Any, what: str, notes: list[str]) -> Any:
    try:
        return read()
    except ApiError as error:
        if what:
            notes.append(f"{what}: {error.message}")
        return otherwise
