"""After a rollout that succeeded, pods that run something else than what was applied."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from .broken import IMAGE, container, manifest, spec, workload
from .conftest import Cluster

pytestmark = pytest.mark.cluster

NAMESPACE = "rollout-images"
MIRROR = "jr2.local/rollout-mirror:1"


@pytest.fixture(scope="module", autouse=True)
def namespace(cluster: Cluster) -> Iterator[str]:
    with cluster.namespace(NAMESPACE) as name:
        yield name


def test_a_pod_that_carries_another_image_is_an_error(cluster: Cluster) -> None:
    what = workload("mirrored", NAMESPACE)
    cluster.name_image(IMAGE, MIRROR)
    try:
        with cluster.rewritten_images(NAMESPACE, IMAGE, MIRROR):
            cluster.apply(manifest(what, spec()))
            outcome = cluster.wait(what)
    finally:
        cluster.forget_image(MIRROR)

    assert outcome.error == (
        f"error: mirrored: rollout reported success, but the running pod carries {MIRROR} — "
        f"expected {IMAGE}. The cluster is serving code this converge did not deploy; "
        f"`kubectl -n {NAMESPACE} rollout restart deploy` and re-run `jr2 up` to resolve it."
    )


def test_the_same_name_with_another_content_is_another_image(cluster: Cluster) -> None:
    what = workload("moved", NAMESPACE)
    cluster.apply(manifest(what, spec()))
    assert cluster.wait(what).error == ""
    status = json.loads(
        cluster.kubectl("-n", NAMESPACE, "get", "pods", "-l", "app=moved", "-o", "json")
    )["items"][0]["status"]["containerStatuses"][0]
    runs = status["imageID"].rpartition("@")[2]

    expected = f"sha256:{'0' * 64}"
    moved = replace(what, digest=expected, config=expected)

    assert cluster.wait(replace(what, digest=runs, config=runs)).error == ""
    assert f"but the running pod carries {IMAGE}@{runs} — expected {IMAGE}." in (
        cluster.wait(moved).error
    )


def test_only_the_named_container_of_several_is_compared(cluster: Cluster) -> None:
    cluster.name_image(IMAGE, MIRROR)
    try:
        what = workload("two", NAMESPACE)
        cluster.apply(manifest(what, spec(container("agent"), container("beside", image=MIRROR))))
        named = cluster.wait(replace(what, container="agent"))
        all_of_them = cluster.wait(what)
    finally:
        cluster.forget_image(MIRROR)

    assert named.error == ""
    assert f"carries {MIRROR} — expected {IMAGE}" in all_of_them.error
