"""The demo, as a newcomer types it: from the checkout to a Workflow that ran."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from jr2 import names

from .conftest import CHECKOUT, CONTEXT, Instance

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def test_the_demo_ends_with_a_run(kit_images: None, tmp_path: Path) -> None:
    folder = tmp_path / "demo"

    done = subprocess.run(
        [str(CHECKOUT / "scripts" / "demo"), str(folder)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "converged — `jr2 run <workflow>` when ready" in done.stderr.splitlines()
    status = json.loads(done.stdout.strip().splitlines()[-1])
    assert status["output"] == {"reply": "pong: hi"}
    for stage in ("tools", "cluster", "Kit images", "jr2 up", "jr2 run ping", "all"):
        assert f"  {stage}: " in done.stderr

    demo = Instance(folder, "demo")
    assert names.SYSTEM_NAMESPACE in of_ours(demo)

    demo.jr2("down", "--context", CONTEXT, "--all", "--yes")

    assert of_ours(demo) == set()


def of_ours(instance: Instance) -> set[str]:
    """Return the names of what jr2 has in the cluster beside Instances of others."""
    listed = json.loads(
        instance.kubectl(
            "get", "-o", "json",
            "namespaces,customresourcedefinitions,clusterroles,clusterrolebindings,priorityclasses",
        )
    )  # fmt: skip
    return {
        item["metadata"]["name"]
        for item in listed["items"]
        if item["metadata"].get("labels", {}).get(names.LABEL_MANAGED_BY) == names.MANAGED_BY
        or item["metadata"]["name"] in {names.SYSTEM_NAMESPACE, instance.name}
    }
