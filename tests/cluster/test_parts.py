"""The parts that come and go, on the real cluster: their pods serve, refuse, and are removed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jr2 import names
from jr2_cli.local_cluster import local_import
from jr2_infra.images.checkout import built_platform
from jr2_infra.images.delivery.local import LocalNode
from tests.waiting import wait_for

from .conftest import Instance
from .custodian_image import bring_custodian

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

NAME = "parts-test"
WORKFLOWS = Path(__file__).parent / "workflows"
REPO_URL = "https://github.com/acme/app.git"
REPO = {
    "apiVersion": f"{names.API_GROUP}/{names.API_VERSION}",
    "kind": "Repo",
    "metadata": {"name": "app-12345678", "namespace": NAME},
    "spec": {"url": REPO_URL},
}
ASK = """
import json, sys, time, urllib.error, urllib.request
end = time.monotonic() + 200
def ask(method, url):
    while True:
        try:
            request = urllib.request.Request(url, method=method)
            with urllib.request.urlopen(request, timeout=60) as said:
                return [said.status, json.load(said)]
        except urllib.error.HTTPError as error:
            return [error.code, json.load(error)]
        except OSError:
            # A Service and a policy follow their pods a moment later.
            if time.monotonic() > end:
                raise
            time.sleep(0.5)
print(json.dumps([ask(method, url) for method, url in json.loads(sys.argv[1])]))
"""


def register(instance: Instance, *workflows: str) -> None:
    """Have these Workflows beside `ping`, and no others."""
    for place in (instance.folder / "workflows").glob("*.py"):
        if place.stem != "ping":
            place.unlink()
    for place in (instance.folder / "charts").glob("*.mmd"):
        place.unlink()
    for name in workflows:
        shutil.copy(WORKFLOWS / f"{name}.py", instance.folder / "workflows" / f"{name}.py")
    instance.jr2("chart")


@pytest.fixture(scope="module")
def instance(
    new_instance: Callable[[str], Instance],
    depart: Callable[[Instance], None],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Instance]:
    found = local_import()
    assert found is not None
    bring_custodian(
        LocalNode(found.ctr, found.socket),
        tmp_path_factory.mktemp("custodian"),
        architecture=built_platform().partition("/")[2],
    )
    made = new_instance(NAME)
    register(made, "menu", "hook", "repos")
    yield made
    depart(made)


def ask(instance: Instance, *requests: tuple[str, str]) -> Any:
    """Ask from the Orchestrator's container, which alone may."""
    said = instance.kubectl(
        "-n", NAME, "exec", instance.pod()["metadata"]["name"], "-c", "orchestrator", "--",
        "/usr/bin/python3", "-I", "-c", ASK, json.dumps(requests),
    )  # fmt: skip
    return json.loads(said)


def of_instance(instance: Instance, kinds: str) -> set[str]:
    """Return the names of the objects of some kinds."""
    listed = instance.kubectl("-n", NAME, "get", kinds, "-o", "name").split()
    return {name.rpartition("/")[2] for name in listed}


def test_parts_come_serve_and_go(instance: Instance, pulumi_must_not_run: dict[str, str]) -> None:
    said = instance.up()
    lines = said.splitlines()
    order = [lines.index(f"{part}: waiting for rollout") for part in (
        "operator", "orchestrator", "repo cache", "instance harness", "instance effector",
    )]  # fmt: skip
    assert order == sorted(order)
    assert lines[-1].startswith("converged")

    harness, effector = (
        f"http://{names.INSTANCE_HARNESS}:{names.HARNESS_PORT}",
        f"http://{names.INSTANCE_EFFECTOR}:{names.EFFECTOR_PORT}",
    )
    well = {"ok": True, "version": names.KIT_VERSION}
    assert ask(
        instance,
        ("GET", f"{harness}/healthz"),
        ("POST", f"{harness}/agents/triager/run-1"),
        ("GET", f"{effector}/healthz"),
        ("POST", f"{effector}/effects"),
    ) == [
        [200, well],
        [401, {"error": "unauthorized"}],
        [200, well],
        [401, {"error": "unauthorized"}],
    ]
    instance.kubectl("apply", "-f", "-", stdin=json.dumps(REPO))
    [entry] = wait_for(
        "the node's word on the Repo",
        lambda: (instance.get("repo", "app-12345678").get("status") or {}).get("nodes") or [],
    )
    assert entry["present"] is False
    assert entry["lastError"] == "this Repo cache keeps no clones yet"

    pods = {pod["metadata"]["uid"] for pod in instance.get("pods")["items"]}
    again = instance.up(environment=pulumi_must_not_run)
    assert "instance harness: verified — 1 pod(s) running" in again
    assert {pod["metadata"]["uid"] for pod in instance.get("pods")["items"]} == pods

    # A pod that cannot start stands in nobody's way: the next converge repairs it.
    patch = [
        {
            "op": "replace",
            "path": "/spec/template/spec/containers/0/image",
            "value": "jr2.local/nothing:1",
        }
    ]
    instance.kubectl(
        "-n", NAME, "patch", "statefulset", names.INSTANCE_HARNESS, "--type=json",
        "-p", json.dumps(patch),
    )  # fmt: skip

    def is_broken() -> bool:
        return any(
            "waiting" in status["state"] and status["image"].endswith("nothing:1")
            for pod in instance.get("pods", "-l", f"app={names.INSTANCE_HARNESS}")["items"]
            for status in pod["status"].get("containerStatuses") or []
        )

    wait_for("a pod with the other image", is_broken)
    healed = instance.up()
    assert "spec.template.spec.containers[harness].image was changed by kubectl-patch" in healed

    register(instance)
    gone = instance.up()
    for line in (
        "repo cache: removing it (no Machine has a Sandbox)",
        "instance harness: removing it (no Agent is Menu-only)",
        "instance effector: removing it (no Effect runs there)",
    ):
        assert line in gone.splitlines()
    kinds = "statefulset,daemonset,deployment,service,role,rolebinding,serviceaccount"
    wait_for(
        "nothing is left of the parts",
        lambda: of_instance(instance, kinds) <= {names.ORCHESTRATOR, "default"},
    )
    assert names.CONVERSATIONS_CLAIM in of_instance(instance, "pvc")
    # The server adds the default of the definition to what was written.
    assert instance.get("repo", "app-12345678")["spec"]["url"] == REPO_URL
