"""Read the parts of pods that a rollout is judged by.

All functions are pure and take objects as the API gives them. A field that is missing is read as
its default, never as an error: a rollout is judged while its objects are being made.

Source: spec/converge.md §6.4 and §6.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Pod = Mapping[str, Any]

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
RUNNING: Final = "Running"
CRASH_REASON: Final = "CrashLoopBackOff"
NOT_STARTED_REASONS: Final = frozenset({"RunContainerError", "PostStartHookError"})
"""Why a container was made and does not run; the kubelet backs off from it as from a crash."""
BEING_MADE_REASONS: Final = frozenset({"ContainerCreating", "PodInitializing", "Waiting"})


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
        has_probe: whether a probe decides when it is ready. Without one it is ready as soon as it
            runs, also one that ends in the next moment.
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
    has_probe: bool

    @property
    def is_crash_loop(self) -> bool:
        """Whether it ended, or could not be started, and was started again before.

        While the kubelet backs off, the API shows `CrashLoopBackOff` or still how it ended.
        """
        backs_off = self.reason == CRASH_REASON or self.reason in NOT_STARTED_REASONS
        ended = backs_off or self.exit_code is not None
        return not self.ready and bool(self.restarts) and ended


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


def has_ended(pod: Pod) -> bool:
    """Say whether a pod ended for good, such as one that was evicted."""
    return (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded")


def is_being_made(pod: Pod) -> bool:
    """Say whether a container of a pod waits for its volumes, its image or an init container."""
    return any(
        not item.ready and item.reason in BEING_MADE_REASONS and item.exit_code is None
        for item in containers(pod)
    )


def spokesman(pod: Pod) -> ContainerState | None:
    """Return the container that explains why a pod is not ready.

    That is the first one that failed, for another container may merely wait for it; else the first
    that is not ready; `None` when all are ready.
    """
    waiting = [item for item in containers(pod) if not item.ready]
    failed = (item for item in waiting if item.restarts or item.exit_code)
    return next(failed, next(iter(waiting), None))


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
        reason, message = RUNNING, ""
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
        has_probe=bool(spec.get("readinessProbe")),
    )
