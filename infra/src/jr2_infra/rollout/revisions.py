"""Which pods are of the newest revision of a workload, and whether that revision is complete.

A workload keeps the pods of its last revision while it makes those of the next, and its status
describes the last one until its controller has seen the change. So nothing is judged before the
controller has, and only pods of the revision that the workload asks for now are judged:

- of a Deployment, the pods of the ReplicaSet that has the same pod template, as its controller
  compares them;
- of a DaemonSet, those with the hash of its newest ControllerRevision;
- of a StatefulSet, those with the revision that its status calls the update.

All functions are pure and take objects as the API gives them.

Source: spec/converge.md §6.3, field case 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from . import pods

TEMPLATE_HASH: Final = "pod-template-hash"
REVISION_HASH: Final = "controller-revision-hash"

Live = Mapping[str, Any]


def is_seen(workload: Live | None) -> bool:
    """Say whether its controller has seen the newest change of a workload."""
    if workload is None:
        return False
    observed = int((workload.get("status") or {}).get("observedGeneration") or 0)
    return observed >= int(workload.get("metadata", {}).get("generation") or 0)


def wanted_pods(workload: Live) -> int:
    """Return how many pods of its newest revision a workload wants."""
    if workload.get("kind") == "DaemonSet":
        return int((workload.get("status") or {}).get("desiredNumberScheduled") or 0)
    replicas = (workload.get("spec") or {}).get("replicas")
    return 1 if replicas is None else int(replicas)


def is_complete(workload: Live | None) -> bool:
    """Say whether a workload runs its newest revision and nothing else, as kubectl judges it."""
    if workload is None or not is_seen(workload):
        return False
    status = workload.get("status") or {}

    def count(field: str) -> int:
        return int(status.get(field) or 0)

    wanted = wanted_pods(workload)
    match workload.get("kind"):
        case "DaemonSet":
            return count("updatedNumberScheduled") >= wanted and count("numberAvailable") >= wanted
        case "StatefulSet":
            return (
                count("readyReplicas") >= wanted
                and count("replicas") == wanted
                and status.get("updateRevision") == status.get("currentRevision")
            )
        case _:
            updated = count("updatedReplicas")
            return (
                updated >= wanted
                and count("replicas") <= updated
                and count("availableReplicas") >= updated
            )


def newest(workload: Live | None, revisions: Sequence[Live]) -> Live | None:
    """Return the object that stands for the newest revision, once the controller has made it.

    Args:
        workload: the Deployment, DaemonSet or StatefulSet.
        revisions: the ReplicaSets of its namespace, or the ControllerRevisions.
    """
    if workload is None or not is_seen(workload):
        return None
    uid = workload.get("metadata", {}).get("uid")
    own = [item for item in revisions if _owned(item, uid)]
    match workload.get("kind"):
        case "DaemonSet":
            return max(own, key=lambda item: int(item.get("revision") or 0), default=None)
        case "StatefulSet":
            name = (workload.get("status") or {}).get("updateRevision")
            return next((item for item in own if pods.name_of(item) == name), None)
        case _:
            wanted = _template(workload)
            same = [item for item in own if _template(item) == wanted]
            # When two are alike, the controller goes on with the older one.
            return min(same, key=lambda item: _created(item) or "~", default=None)


def pods_of_newest(
    workload: Live | None, revisions: Sequence[Live], found: Sequence[pods.Pod]
) -> tuple[pods.Pod, ...]:
    """Return the pods of the newest revision that are not being removed."""
    revision = newest(workload, revisions)
    if revision is None or workload is None:
        return ()
    labels = revision.get("metadata", {}).get("labels") or {}
    match workload.get("kind"):
        case "DaemonSet":
            key, value = REVISION_HASH, labels.get(REVISION_HASH)
        case "StatefulSet":
            key, value = REVISION_HASH, pods.name_of(revision)
        case _:
            key, value = TEMPLATE_HASH, labels.get(TEMPLATE_HASH)
    return tuple(
        pod
        for pod in found
        if not pods.is_terminating(pod)
        and value
        and (pod.get("metadata", {}).get("labels") or {}).get(key) == value
    )


def _owned(item: Live, uid: object) -> bool:
    owners = item.get("metadata", {}).get("ownerReferences") or []
    return bool(uid) and any(owner.get("uid") == uid for owner in owners)


def _created(item: Live) -> str:
    return str(item.get("metadata", {}).get("creationTimestamp") or "")


def _template(item: Live) -> Any:
    """Return the pod template of a Deployment or ReplicaSet, without what its controller adds."""
    template = (item.get("spec") or {}).get("template") or {}
    metadata = template.get("metadata") or {}
    labels = {
        name: value
        for name, value in (metadata.get("labels") or {}).items()
        if name != TEMPLATE_HASH
    }
    return _said({**template, "metadata": {**metadata, "labels": labels}})


def _said(value: Any) -> Any:
    """Return a value without its empty parts: two API versions write nothing in different ways."""
    if isinstance(value, Mapping):
        kept = {name: _said(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        return [_said(item) for item in value]
    return value
