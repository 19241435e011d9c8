"""Check that the pods of a rollout run the image that the converge expected.

The pods prove that the cluster is right, not the labels: the ref of each container is compared
with the expected one and, where both are known, the digest of the image that runs.

Source: seed 000 (What jr2 up does), spec/converge.md §6.4, design §5.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jr2.errors import StepFailed

from . import pods
from .revisions import is_complete, wanted_pods
from .workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What the pods of a rollout run.

    Args:
        count: how many pods run the expected image.
        other: what else runs, as it is shown in the error.
    """

    count: int
    other: tuple[str, ...] = ()


def look(workload: Workload, found: Sequence[Mapping[str, Any]]) -> Verified:
    """Compare the pods that match the selector with the expected image."""
    other: list[str] = []
    count = 0
    for pod in found:
        if not _counts(workload, pod):
            continue
        wrong = _wrong_images(workload, pod)
        other += wrong
        count += not wrong
    return Verified(count=count, other=tuple(dict.fromkeys(other)))


def verified_line(workload: Workload, count: int) -> str:
    """Return the line of a rollout whose pods run the expected image."""
    return f"{workload.layer}: verified — {count} pod(s) running {workload.image}"


def waiting_line(workload: Workload) -> str:
    """Return the line before the wait."""
    return f"{workload.layer}: waiting for rollout"


def conclude(workload: Workload, verified: Verified) -> str:
    """Return the line that ends a rollout.

    Raises:
        StepFailed: a pod runs another image.
    """
    if verified.other:
        raise StepFailed(
            f"{workload.layer}: rollout reported success, but the running pod carries "
            f"{', '.join(verified.other)} — expected {workload.image}. The cluster is serving code "
            f"this converge did not deploy; `kubectl -n {workload.namespace} rollout restart "
            "deploy` and re-run `jr2 up` to resolve it."
        )
    if not verified.count:
        return (
            f"{workload.layer}: WARNING — rollout succeeded but no pod matched "
            f"{workload.selector} (nothing verified)"
        )
    return verified_line(workload, verified.count)


def stands(
    workload: Workload,
    live: Mapping[str, Any] | None,
    found: Sequence[Mapping[str, Any]],
) -> int | None:
    """Return how many pods run the expected image, or `None` when the rollout must be looked at.

    This is the fact that a `Rollout` step is derived from: the step is needed again unless the
    workload is complete, every pod is ready and each runs the expected image. A DaemonSet that no
    node takes stands with no pod at all.
    """
    if live is None or not is_complete(live):
        return None
    own = [pod for pod in found if _counts(workload, pod)]
    verified = look(workload, own)
    if verified.other or not all(pods.is_ready(pod) for pod in own):
        return None
    if not verified.count and wanted_pods(live):
        return None
    return verified.count


def _counts(workload: Workload, pod: pods.Pod) -> bool:
    """Say whether a pod is one that serves: one that goes or that was evicted is not."""
    return (
        pods.matches(pod, workload.selector)
        and not pods.is_terminating(pod)
        and not pods.has_ended(pod)
    )


def _wrong_images(workload: Workload, pod: Mapping[str, Any]) -> list[str]:
    wrong: list[str] = []
    for container in pods.containers(pod):
        if container.init or workload.container not in ("", container.name):
            continue
        if container.image != workload.image:
            wrong.append(container.image)
            continue
        digest = _other_digest(workload, container.image_id)
        if digest:
            wrong.append(f"{container.image}@{digest}")
    return wrong


def _other_digest(workload: Workload, image_id: str) -> str:
    """Return the digest that runs when it is another one than expected.

    A runtime gives `<repository>@<manifest digest>` for an image that was pulled, and the bare
    digest of its config for one that was imported.
    """
    _, at, digest = image_id.rpartition("@")
    expected = workload.digest if at else workload.config
    if expected is None or not digest.startswith("sha256:"):
        return ""
    return "" if digest == expected else digest
