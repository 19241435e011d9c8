"""What the pods of a failed rollout say, as the lines of the error.

The evidence comes first and is quoted, not interpreted; a diagnosis only explains what stands
above it. The layout is that of the seed's example, pinned by a golden test.

Source: seed 001 (Fix a rollout that does not complete), spec/converge.md §6.5, field case 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from . import events as said
from . import pods
from .workload import MAKERS, Workload

SHOWN_PODS: Final = 3
SHOWN_EVENTS: Final = 4
SHOWN_LOG_LINES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTail:
    """The last lines of one container's log.

    Args:
        container: whose log it is.
        previous: whether it is the log of the run before.
        lines: the last lines, oldest first.
    """

    container: str
    previous: bool
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEvidence:
    """One pod and what was read about it.

    Args:
        pod: the pod.
        architecture: the architecture of its node, where it is known.
        events: its last events, oldest first.
        failed_mount: why a volume of it cannot be mounted, when the object that it names is
            missing.
        log: the log of the container that explains why it is not ready, when there is one.
        pull_messages: the longest message of a failed pull, by container.
    """

    pod: Mapping[str, Any]
    architecture: str = ""
    events: Sequence[Mapping[str, Any]] = ()
    failed_mount: str = ""
    log: LogTail | None = None
    pull_messages: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that was read about a failed rollout.

    Args:
        workload: what was rolled out.
        shown: the pods of the new revision that are shown, not ready ones first.
        notes: what else is known, each one line: no pod at all, pods that are not shown, reads
            that failed.
        still_serving: the pod of the revision before, when it still serves.
    """

    workload: Workload
    shown: tuple[PodEvidence, ...] = ()
    notes: tuple[str, ...] = ()
    still_serving: str = ""


def chosen_pods(made: Sequence[pods.Pod]) -> tuple[tuple[pods.Pod, ...], int]:
    """Return the pods that are shown, not ready ones first, and how many are not shown."""
    ordered = sorted(made, key=lambda pod: (pods.is_ready(pod), pods.name_of(pod)))
    return tuple(ordered[:SHOWN_PODS]), max(0, len(ordered) - SHOWN_PODS)


def last_events(
    events: Sequence[Mapping[str, Any]], name: str, uid: str = ""
) -> tuple[Mapping[str, Any], ...]:
    """Return the last events of one object, oldest first."""
    return tuple(said.of_object(events, name, uid)[-SHOWN_EVENTS:])


def no_pod_notes(
    workload: Workload, *, matching: int, terminating: int, refused: str
) -> tuple[str, ...]:
    """Return what is said when the new revision has no pod.

    Args:
        workload: what was rolled out.
        matching: how many pods match its selector.
        terminating: how many of them are being removed.
        refused: why its controller made none, where it says so.
    """
    maker = MAKERS[workload.kind]
    if matching and matching == terminating:
        first = f"every pod that matches {workload.selector} is terminating"
    elif matching - terminating > 0:
        first = (
            f"the new revision made no pod — the {maker} made none "
            "(check quota, node taints, and the selector)"
        )
    else:
        first = (
            f"no pod matches {workload.selector} — the {maker} made none "
            "(check quota, node taints, and the selector)"
        )
    return (first, f"the {maker} says {refused}") if refused else (first,)


def render(evidence: Evidence) -> list[str]:
    """Return the evidence as lines, each indented."""
    lines: list[str] = []
    for item in evidence.shown:
        lines += _pod_lines(item)
    lines += [f"  {note}" for note in evidence.notes]
    if evidence.still_serving:
        lines.append(
            f"  pod {evidence.still_serving} of the revision before still serves; "
            "nothing was published"
        )
    return lines


def message(evidence: Evidence, diagnosis: str | None, last_words: str) -> str:
    """Return the whole text of the error, after its prefix.

    Args:
        evidence: what was read.
        diagnosis: the explanation, when there is one.
        last_words: what ended the wait.
    """
    workload = evidence.workload
    lines = [
        f"{workload.name}: rollout did not complete in namespace {workload.namespace} — "
        "the pods say:",
        "",
        *render(evidence),
        "",
    ]
    if diagnosis:
        lines += [diagnosis, ""]
    return "\n".join([*lines, last_words])


def _pod_lines(item: PodEvidence) -> list[str]:
    pod = item.pod
    node = (pod.get("spec") or {}).get("nodeName")
    where = f" on node {node}" if node else " on no node"
    if node and item.architecture:
        where += f" ({item.architecture})"
    phase = (pod.get("status") or {}).get("phase") or "Unknown"
    lines = [f"  pod {pods.name_of(pod)} ({phase}){where}"]
    lines += [f"    {text}" for text in _why_it_ended(pod)]
    for container in pods.containers(pod):
        lines += _container_lines(container, item.pull_messages.get(container.name, ""))
    if not node:
        lines += [f"    {text}" for text in _unscheduled(pod)]
    for event in item.events:
        lines += _indented(
            4,
            f"event {event.get('type', '')} {event.get('reason', '')}: "
            f"{str(event.get('message') or '').strip()}",
        )
    if item.log and item.log.lines:
        of = "the run before" if item.log.previous else "its last lines"
        lines.append(f"    log of container {item.log.container} ({of}):")
        lines += [f"      {line}" for line in item.log.lines]
    return lines


def _container_lines(container: pods.ContainerState, pull_message: str) -> list[str]:
    word = "init container" if container.init else "container"
    state = container.reason
    if container.exit_code is not None:
        state += f" (exit {container.exit_code})"
    if container.restarts:
        times = "once" if container.restarts == 1 else f"{container.restarts} times"
        state += f", restarted {times}"
    lines = [f"    {word} {container.name}: {state}", f"      image {container.image}"]
    if container.message:
        lines += _indented(6, container.message)
    if pull_message and pull_message not in container.message:
        lines += _indented(6, pull_message)
    if container.last_exit is not None and container.exit_code is None:
        last = f"last exit: {container.last_reason or 'Terminated'} (exit {container.last_exit})"
        lines += _indented(6, last)
        if container.last_message:
            lines += _indented(6, container.last_message)
    return lines


def _why_it_ended(pod: pods.Pod) -> list[str]:
    status = pod.get("status") or {}
    if not pods.has_ended(pod) or not status.get("reason"):
        return []
    return [f"{status['reason']}: {str(status.get('message') or '').strip()}"]


def _unscheduled(pod: pods.Pod) -> list[str]:
    return [
        f"{condition.get('reason')}: {condition.get('message')}"
        for condition in (pod.get("status") or {}).get("conditions") or []
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False"
    ]


def _indented(depth: int, text: str) -> list[str]:
    return [f"{' ' * depth}{line}" for line in text.splitlines() or [""]]
