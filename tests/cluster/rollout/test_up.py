"""`jr2 up` on a cluster that refuses its pods, changes them, or cannot give them their image.

The tests stand in the order in which a person meets them, on one Instance: the first converge
fails, the cause goes, and the same command converges with no clean-up by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from jr2 import names

from ..conftest import Instance
from .conftest import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

NAME = "rollout-up"
MIRROR = "jr2.local/rollout-up-mirror:1"
CONVERGED = "converged — `jr2 run <workflow>` when ready"


@pytest.fixture(scope="module")
def instance(
    new_instance: Callable[[str], Instance], cluster: Cluster, depart: Callable[[Instance], None]
) -> Iterator[Instance]:
    made = new_instance(NAME)
    made.kubectl("create", "namespace", NAME)
    made.kubectl("-n", NAME, "create", "quota", "team-quota", "--hard=pods=0")
    yield made
    depart(made)


def error_of(said: str) -> str:
    """Return the error of a converge, which is its last words."""
    return said[said.index("\nerror: ") + 1 :].rstrip("\n")


def test_a_quota_ends_the_first_converge_in_seconds(instance: Instance) -> None:
    said = instance.up(code=1)

    assert "orchestrator: waiting for rollout\n" in said
    assert "assembly: publishing" not in said
    assert re.fullmatch(
        rf"error: jr2-orchestrator: rollout did not complete in namespace {NAME} — the pods say:\n"
        r"\n"
        r"  no pod matches app=jr2-orchestrator — the ReplicaSet made none \(check quota, node "
        r"taints, and the selector\)\n"
        r'  the ReplicaSet says FailedCreate: pods "jr2-orchestrator-\S+" is forbidden: exceeded '
        r"quota: team-quota, requested: pods=1, used: pods=0, limited: pods=0\n"
        r"\n"
        r"stopped after \d+s: FailedCreate does not heal by waiting",
        error_of(said),
    )


def test_the_same_command_converges_when_the_quota_is_gone(
    instance: Instance, pulumi_must_not_run: dict[str, str]
) -> None:
    # At once: what the first converge left does not end the second one.
    instance.kubectl("-n", NAME, "delete", "quota", "team-quota")

    said = instance.up()

    assert said.splitlines()[-1] == CONVERGED
    # What started the pods again is nobody's change: the next run finds nothing to heal.
    again = instance.up(environment=pulumi_must_not_run)
    assert again.splitlines()[-1] == CONVERGED
    assert "drift" not in again


def test_a_pod_that_a_webhook_gave_another_image_is_an_error_and_nothing_is_published(
    instance: Instance, cluster: Cluster
) -> None:
    image = instance.pod()["spec"]["containers"][0]["image"]
    cluster.name_image(image, MIRROR)
    instance.write("workflows/second.py", (instance.folder / "workflows/ping.py").read_text())
    try:
        with cluster.rewritten_images(NAME, image, MIRROR):
            instance.kubectl("-n", NAME, "delete", "pod", "-l", f"app={names.ORCHESTRATOR}")
            said = instance.up(code=1)
    finally:
        cluster.forget_image(MIRROR)

    assert error_of(said) == (
        f"error: orchestrator: rollout reported success, but the running pod carries {MIRROR} — "
        f"expected {image}. The cluster is serving code this converge did not deploy; "
        f"`kubectl -n {NAME} rollout restart deploy` and re-run `jr2 up` to resolve it."
    )
    assert "assembly: publishing" not in said


def test_the_command_that_the_error_names_resolves_it(instance: Instance) -> None:
    instance.kubectl("-n", NAME, "rollout", "restart", "deploy")

    assert instance.up().splitlines()[-1] == CONVERGED


def test_an_image_that_the_node_lost_ends_it_with_the_diagnosis(
    instance: Instance, cluster: Cluster
) -> None:
    image = instance.pod()["spec"]["containers"][0]["image"]
    nowhere = "jr2.local/rollout-up-nowhere:1"
    with cluster.rewritten_images(NAME, image, nowhere):
        instance.kubectl("-n", NAME, "delete", "pod", "-l", f"app={names.ORCHESTRATOR}")
        error = error_of(instance.up(code=1))

    assert re.search(
        r"\n  pod jr2-orchestrator-\S+ \(Pending\) on node jr2-local \(\w+\)\n"
        rf"    container orchestrator: (ErrImagePull|ImagePullBackOff)\n      image {nowhere}\n",
        error,
    )
    assert f"\ndiagnosis: the kubelet could not pull {nowhere}.\n" in error
    assert instance.up().splitlines()[-1] == CONVERGED
