"""Read the parts of pods, ReplicaSets and events that a rollout is judged by.

All functions are pure and take objects as the API gives them. A field that is missing is read as
its default, never as an error: a rollout is judged while its objects are being made.

Source: spec/converge.md §6.4 and §6.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Pod = Mapping[str, Any]

TEMPLATE_HASH: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"

PULL_REASONS: Final = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
    }
)
CONFIG_REASONS: Final = frozenset({"CreateContainerConfigError", "CreateContainerError"})
CRASH_REASON: Final = "CrashLoopBackOff"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """One container of a pod, init containers too.

    Args:
        name: its name.
        init: whether it is an init container.
        image: the image that the spec names.
        image_id: the image that runs, with its digest where the runtime gives one.
        ready: whether it is ready, or an init container that is done.
        reason: why it waits or ended, or `Running`.
        message: what the kubelet says about that.
        exit_code: how it ended, when it did.
        restarts: how often it was started again.
        last_reason: why the run before ended.
        last_exit: how the run before ended.
        last_message: its last words.
    """

    name: str
    init: bool
    image: str
    image_id: str
    ready: bool
    reason: str
    message: str
    exit_code: int | None
    restarts: int
    last_reason: str
    last_exit: int | None
    last_message: str


def name_of(obj: Mapping[str, Any]) -> str:
    """Return an object's name."""
    return str(obj.get("metadata", {}).get("name", ""))


def is_terminating(pod: Pod) -> bool:
    """Say whether a pod is being removed."""
    return bool(pod.get("metadata", {}).get("deletionTimestamp"))


def is_ready(pod: Pod) -> bool:
    """Say whether a pod serves."""
    return any(
        condition.get("type") == "Ready" and condition.get("status") == "True"
        for condition in pod.get("status", {}).get("conditions") or []
    )


def matches(pod: Pod, selector: str) -> bool:
    """Say whether a pod has the labels of a selector of the form `key=value,key=value`."""
    labels = pod.get("metadata", {}).get("labels") or {}
    return all(
        labels.get(key) == value
        for key, _, value in (part.partition("=") for part in selector.split(","))
    )


def containers(pod: Pod) -> Iterator[ContainerState]:
    """Yield the containers of a pod, init containers first, as the spec orders them."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    for key, init in (("initContainers", True), ("containers", False)):
        stated = {
            item.get("name"): item
            for item in status.get(f"{key[:-1]}Statuses") or []
            if isinstance(item, dict)
        }
        for item in spec.get(key) or []:
            yield _container(item, stated.get(item.get("name")) or {}, init)


def first_not_ready(pod: Pod) -> ContainerState | None:
    """Return the first container that is not ready; `None` when all are, or none is known."""
    return next((item for item in containers(pod) if not item.ready), None)


def newest_replica_set(
    deployment: Mapping[str, Any] | None, replica_sets: Iterable[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Return the ReplicaSet of a Deployment's newest revision, once the controller has made it."""
    if deployment is None:
        return None
    uid = deployment.get("metadata", {}).get("uid")
    revision = (deployment.get("metadata", {}).get("annotations") or {}).get(REVISION)
    for item in replica_sets:
        metadata = item.get("metadata", {})
        owned = any(owner.get("uid") == uid for owner in metadata.get("ownerReferences") or [])
        if owned and revision and (metadata.get("annotations") or {}).get(REVISION) == revision:
            return item
    return None


def of_revision(pods: Sequence[Pod], replica_set: Mapping[str, Any] | None) -> tuple[Pod, ...]:
    """Return the pods that a ReplicaSet made and that are not being removed."""
    if replica_set is None:
        return ()
    wanted = (replica_set.get("metadata", {}).get("labels") or {}).get(TEMPLATE_HASH)
    return tuple(
        pod
        for pod in pods
        if not is_terminating(pod)
        and (pod.get("metadata", {}).get("labels") or {}).get(TEMPLATE_HASH) == wanted
    )


def carried_images(pod: Pod) -> tuple[str, ...]:
    """Return the images that the containers of a pod name, each once."""
    return tuple(
        dict.fromkeys(str(item.get("image", "")) for item in pod["spec"].get("containers") or [])
    )


def _container(spec: Mapping[str, Any], status: Mapping[str, Any], init: bool) -> ContainerState:
    state = status.get("state") or {}
    waiting, running = state.get("waiting"), state.get("running")
    ended = state.get("terminated")
    last = (status.get("lastState") or {}).get("terminated") or {}
    exit_code = ended.get("exitCode") if ended else None
    done = init and exit_code == 0
    if waiting is not None:
        reason, message = waiting.get("reason") or "Waiting", waiting.get("message") or ""
    elif ended is not None:
        reason, message = ended.get("reason") or "Terminated", ended.get("message") or ""
    elif running is not None:
        reason, message = "Running", ""
    else:
        reason, message = "Waiting", ""
    return ContainerState(
        name=str(spec.get("name", "")),
        init=init,
        image=str(spec.get("image", "")),
        image_id=str(status.get("imageID") or ""),
        ready=done or bool(status.get("ready")),
        reason=reason,
        message=message.strip(),
        exit_code=exit_code,
        restarts=int(status.get("restartCount") or 0),
        last_reason=str(last.get("reason") or ""),
        last_exit=last.get("exitCode"),
        last_message=str(last.get("message") or "").strip(),
    )
