"""A first rollout that fails, what is done about it, and a second one."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jr2_infra.rollout.workload import WorkloadKind

from .broken import IMAGE, container, crashing, manifest, shell, spec, workload

if TYPE_CHECKING:
    from .conftest import Cluster, Outcome

NAMESPACE, REFUSED = "rollout-again", "rollout-refused"
LATE = "jr2.local/rollout-late:1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """How the first wait and the second one ended, and the pod that served before."""

    first: Outcome
    second: Outcome
    served: str = ""


def late_image(cluster: Cluster) -> Story:
    """The image comes to the node after the pull failed."""
    what = workload("late-image", NAMESPACE, image=LATE)
    cluster.apply(manifest(what, spec(container(image=LATE))))
    first = cluster.wait(what)
    cluster.name_image(IMAGE, LATE)
    try:
        return Story(first=first, second=cluster.wait(what, began=cluster.moment()))
    finally:
        cluster.forget_image(LATE)


def late_quota(cluster: Cluster) -> Story:
    """The quota is taken away after it refused the pod."""
    what = workload("late-quota", REFUSED)
    cluster.allow_no_pods("no-pods", REFUSED)
    cluster.apply(manifest(what, spec()))
    first = cluster.wait(what)
    cluster.kubectl("-n", REFUSED, "delete", "resourcequota", "no-pods")
    return Story(first=first, second=cluster.wait(what, began=cluster.moment()))


def fixed(kind: WorkloadKind) -> Callable[[Cluster], Story]:
    """The object itself is corrected."""

    def told(cluster: Cluster) -> Story:
        what = workload(f"fixed-{kind.lower()}", NAMESPACE, kind=kind)
        # `Recreate`, as the Orchestrator has it: for a while only pods of before are there.
        more = {"strategy": {"type": "Recreate"}} if kind == "Deployment" else {}
        cluster.apply(manifest(what, spec(crashing(script="exit 3")), **more))
        first = cluster.wait(what)
        began = cluster.moment()
        cluster.apply(manifest(what, spec(), **more))
        return Story(first=first, second=cluster.wait(what, began=began))

    return told


def serving(cluster: Cluster) -> Story:
    """A revision that works is followed by one that does not."""
    what = workload("serving", NAMESPACE)
    cluster.apply(manifest(what, spec()))
    first = cluster.wait(what)
    found = cluster.kubectl("-n", NAMESPACE, "get", "pods", "-l", "app=serving", "-o", "json")
    init = container("preflight", command=shell("echo new one; exit 9"))
    cluster.apply(manifest(what, spec(initContainers=[init])))
    return Story(
        first=first,
        second=cluster.wait(what),
        served=str(json.loads(found)["items"][0]["metadata"]["name"]),
    )


STORIES: dict[str, Callable[[Cluster], Story]] = {
    "late-image": late_image,
    "late-quota": late_quota,
    "fixed-deployment": fixed("Deployment"),
    "fixed-statefulset": fixed("StatefulSet"),
    "fixed-daemonset": fixed("DaemonSet"),
    "serving": serving,
}


def tell_all(cluster: Cluster) -> dict[str, Story]:
    """Tell every story, all at the same time."""
    with (
        cluster.namespace(NAMESPACE),
        cluster.namespace(REFUSED),
        ThreadPoolExecutor(len(STORIES)) as pool,
    ):
        told = pool.map(lambda tell: tell(cluster), STORIES.values())
        return dict(zip(STORIES, told, strict=True))
