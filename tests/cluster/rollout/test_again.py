"""A second rollout after the cause of the first failure was taken away, with no clean-up by hand.

The kubelet and the controllers back off after a failure. What the first try left behind is started
anew by a second run that begins at once, and a fix of the object itself is judged by its own pods. The stories are told at the same
time, and the tests read how each went.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from jr2_infra.rollout.workload import WorkloadKind

from .broken import IMAGE, container, manifest, shell, spec, workload
from .conftest import Cluster, Outcome

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

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
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "no-pods", "namespace": REFUSED},
        "spec": {"hard": {"pods": "0"}},
    }
    what = workload("late-quota", REFUSED)
    cluster.apply(quota, manifest(what, spec()))
    first = cluster.wait(what)
    cluster.kubectl("-n", REFUSED, "delete", "resourcequota", "no-pods")
    return Story(first=first, second=cluster.wait(what, began=cluster.moment()))


def fixed(kind: WorkloadKind) -> Callable[[Cluster], Story]:
    """The object itself is corrected."""

    def told(cluster: Cluster) -> Story:
        what = workload(f"fixed-{kind.lower()}", NAMESPACE, kind=kind)
        # `Recreate`, as the Orchestrator has it: for a while only pods of before are there.
        more = {"strategy": {"type": "Recreate"}} if kind == "Deployment" else {}
        cluster.apply(manifest(what, spec(container(command=shell("exit 3"))), **more))
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


@pytest.fixture(scope="module")
def stories(cluster: Cluster) -> Iterator[dict[str, Story]]:
    with (
        cluster.namespace(NAMESPACE),
        cluster.namespace(REFUSED),
        ThreadPoolExecutor(len(STORIES)) as pool,
    ):
        told = pool.map(lambda tell: tell(cluster), STORIES.values())
        yield dict(zip(STORIES, told, strict=True))


def test_an_image_that_comes_after_the_failure_is_pulled_at_once(stories: dict[str, Story]) -> None:
    story = stories["late-image"]

    assert "does not heal by waiting" in story.first.error
    assert story.second.error == ""
    assert story.second.said[0] == "late-image: waiting for rollout"
    assert story.second.said[1] in {
        f"late-image: an earlier rollout ended with {reason} — starting its pods again"
        for reason in ("ErrImagePull", "ImagePullBackOff")
    }
    assert story.second.said[2:] == (f"late-image: verified — 1 pod(s) running {LATE}",)


def test_a_quota_that_was_raised_is_tried_at_once(stories: dict[str, Story]) -> None:
    story = stories["late-quota"]

    assert "exceeded quota: no-pods" in story.first.error
    assert story.second.error == ""
    assert story.second.said[1:] == (
        "late-quota: an earlier rollout ended with FailedCreate — starting its pods again",
        f"late-quota: verified — 1 pod(s) running {IMAGE}",
    )


@pytest.mark.parametrize("kind", ["deployment", "statefulset", "daemonset"])
def test_a_fix_is_judged_by_its_own_pods(stories: dict[str, Story], kind: str) -> None:
    story = stories[f"fixed-{kind}"]

    assert "CrashLoopBackOff does not heal by waiting" in story.first.error
    assert story.second.error == ""
    assert story.second.said == (
        f"fixed-{kind}: waiting for rollout",
        f"fixed-{kind}: verified — 1 pod(s) running {IMAGE}",
    )


def test_what_served_before_still_serves_and_is_named(stories: dict[str, Story]) -> None:
    story = stories["serving"]

    assert story.first.error == ""
    error = story.second.error
    assert (
        f"\n  pod {story.served} of the revision before still serves; nothing was published\n"
    ) in error
    assert f"\n  pod {story.served} (" not in error
    assert "\n      new one\n" in error
