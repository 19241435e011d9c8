"""The demo, as a newcomer types it: from the checkout to a Workflow that ran."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from jr2 import names
from jr2_infra import rules
from jr2_infra.rules import Place

from . import transcript
from .conftest import CHECKOUT, CONTEXT, Departures, Instance

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]


def test_the_demo_ends_with_a_run(kit_images: None, depart: Departures, tmp_path: Path) -> None:
    # Its last command refuses while other Instances are there.
    depart.wait()
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
    shown = transcript.plain(transcript.of_page(), "hello")
    printed = transcript.plain(transcript.of_run(done.stderr), "demo")
    assert transcript.compared(printed) == transcript.compared(shown)
    assert set(printed) <= set(shown)
    place = Place(instance="hello", context=CONTEXT, namespace="hello")
    question = rules.first_contact(place, rules.Ownership.ABSENT)
    asked = [line for line in transcript.of_page() if transcript.QUESTION in line]
    assert asked == [f"{question}{transcript.QUESTION}y"]
    status = json.loads(done.stdout.strip().splitlines()[-1])
    assert status["output"] == {"reply": "pong: hi"}
    for stage in ("tools", "cluster", "Kit images", "jr2 up", "jr2 run ping", "all"):
        assert f"  {stage}: " in done.stderr

    demo = Instance(folder, "demo")
    assert len(of_ours(demo)) == 8

    demo.jr2("down", "--context", CONTEXT, "--all", "--yes")

    assert of_ours(demo) == set()


def of_ours(instance: Instance) -> set[str]:
    """Return what stands in the cluster of the Instance and of what Instances share."""
    own = {
        instance.name,
        names.SYSTEM_NAMESPACE,
        names.SANDBOXES_CRD,
        names.REPOS_CRD,
        names.OPERATOR_ROLE,
        names.OPERATOR_ROLE_BINDING,
        names.PRIORITY_CONTROL,
        names.PRIORITY_SANDBOX,
    }
    listed = json.loads(
        instance.kubectl(
            "get", "-o", "json",
            "namespaces,customresourcedefinitions,clusterroles,clusterrolebindings,priorityclasses",
        )
    )  # fmt: skip
    return own & {item["metadata"]["name"] for item in listed["items"]}
