"""Publish beside live runs: nothing restarts, a run keeps its Assembly, the older one goes."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jr2 import names
from tests.waiting import LIMIT, wait_for

WORKFLOWS = Path(__file__).parent / "workflows"
REVIEW = (WORKFLOWS / "review.py").read_text()


def version(number: int) -> dict[str, str]:
    return {"review": REVIEW.replace("VERSION = 1", f"VERSION = {number}")}


def go(pod: Any, run: str) -> None:
    answer = pod.client.post(f"/runs/{run}/gates/review/events", json={"type": "go"})
    assert answer.status_code == 200, answer.text


def held(pod: Any) -> list[str]:
    return [each["hash"] for each in pod.assemblies()["assemblies"]]


def folders(pod: Any) -> set[str]:
    return {each.name for each in (pod.folder / "state" / names.ASSEMBLIES_DIR).iterdir()}


def test_a_run_keeps_its_assembly_and_the_older_one_goes_when_it_settles(pod: Any) -> None:
    pod.start_worker()
    main = pod.start_orchestrator()
    first, second = pod.assembly(version(1)), pod.assembly(version(2))
    assert pod.publish(first).status_code == 201
    old, watched = pod.start_run("review"), pod.start_run("review")

    frames: list[str] = []

    def watch() -> None:
        with pod.client.stream("GET", f"/runs/{watched}/events") as feed:
            for line in feed.iter_lines():
                if line.startswith("event:"):
                    frames.append(line)

    watcher = threading.Thread(target=watch)
    watcher.start()
    wait_for("the feed says how it stands", lambda: frames)
    answer = pod.publish(second)
    assert (answer.status_code, answer.json()) == (
        201,
        {"hash": second.hash, "workflows": ["review"]},
    )
    assert pod.publish(second).status_code == 200
    new = pod.start_run("review")
    assert held(pod) == [second.hash, first.hash]
    assert pod.status(old)["olderAssembly"] is True
    assert pod.status(new)["olderAssembly"] is False

    # The same after a restart: the older Assembly is loaded for its runs.
    go(pod, watched)
    watcher.join(timeout=LIMIT)
    assert frames == ["event: status", "event: status"]
    pod.kill(main)
    pod.start_orchestrator()
    assert held(pod) == [second.hash, first.hash]
    for run in (old, new):
        go(pod, run)
    assert pod.status(old)["output"]["version"] == 1
    assert pod.status(new)["output"]["version"] == 2
    wait_for(
        "the older one goes", lambda: held(pod) == [second.hash] and folders(pod) == {second.hash}
    )


def test_a_held_older_assembly_becomes_current_again(pod: Any) -> None:
    pod.start_worker()
    pod.start_orchestrator()
    first, second = pod.assembly(version(1)), pod.assembly(version(2))
    assert pod.publish(first).status_code == 201
    old = pod.start_run("review")
    assert pod.publish(second).status_code == 201
    assert pod.publish(first).status_code == 201
    wait_for("the other one goes", lambda: held(pod) == [first.hash])
    assert pod.status(old)["olderAssembly"] is False
    go(pod, old)
    assert pod.status(old)["output"]["version"] == 1


def test_an_assembly_that_does_not_load_is_refused_and_leaves_nothing(pod: Any) -> None:
    pod.start_worker()
    pod.start_orchestrator()
    good = pod.assembly(version(1))
    assert pod.publish(good).status_code == 201
    broken = pod.assembly({"broken": "import nothing_of_that_name\n", **version(2)})
    answer = pod.publish(broken)
    assert answer.status_code == 422
    assert answer.json()["error"] == "it does not pass the Orchestrator's checks"
    (problem,) = answer.json()["problems"]
    assert "broken" in problem
    assert "nothing_of_that_name" in problem
    dying = pod.assembly({"dying": "import os\n\nos._exit(3)\n"})
    answer = pod.publish(dying)
    assert answer.status_code == 422
    assert answer.json()["problems"] == ["it did not load: the Assembly process ended"]
    assert pod.assemblies()["current"] == good.hash
    assert held(pod) == [good.hash]
    assert folders(pod) == {good.hash}
    assert not list((pod.folder / "state" / "incoming").iterdir())


def test_another_kit_version_is_refused_and_its_live_runs_drift_at_the_next_publish(
    pod: Any,
) -> None:
    """What a new Orchestrator meets on the volume of an old one."""
    pod.start_worker()
    main = pod.start_orchestrator()
    first, second = pod.assembly(version(1)), pod.assembly(version(2))
    other = pod.assembly(version(3), kitVersion="0.9.0")
    answer = pod.publish(other)
    assert answer.status_code == 409
    assert "Kit version 0.9.0" in answer.json()["error"]
    assert pod.publish(first).status_code == 201
    run = pod.start_run("review")
    main.terminate()
    main.wait(timeout=LIMIT)
    pod.change_store("UPDATE assemblies SET kit_version = '0.9.0' WHERE hash = ?", (first.hash,))

    pod.start_orchestrator()
    assert pod.assemblies()["current"] is None
    assert "hash" not in pod.client.get("/healthz").json()
    refused = pod.client.post("/workflows/review/runs", json={})
    assert (refused.status_code, refused.json()) == (
        503,
        {"error": "no Assembly is current — `jr2 up` publishes one"},
    )
    assert pod.status(run)["status"] == "active"
    waiting = pod.client.post(f"/runs/{run}/gates/review/events", json={"type": "go"})
    assert waiting.status_code == 409

    assert pod.publish(second).status_code == 201
    drifted = pod.status(run)
    assert drifted["status"] == "drifted"
    assert drifted["value"] == "review"
    assert drifted["reason"] == (
        f'workflow "review": Assembly {first.hash[:12]} was published for Kit version 0.9.0; '
        f"this Orchestrator is {names.KIT_VERSION}"
    )
    assert [each["runId"] for each in pod.client.get("/runs").json()] == []
    wait_for("the older one goes", lambda: folders(pod) == {second.hash})


def test_assemblies_with_different_versions_of_one_module_live_side_by_side(pod: Any) -> None:
    pod.start_worker()
    pod.start_orchestrator()
    made = []
    for number in (1, 2):
        source = REVIEW.replace("VERSION = 1", "from shared_part import VERSION")
        assembly = pod.assembly({"review": source})
        package = assembly.root / names.ASSEMBLY_PACKAGES / "shared_part.py"
        package.write_text(f"VERSION = {number}\n")
        assert pod.publish(assembly).status_code == 201
        made.append(pod.start_run("review"))
    for number, run in enumerate(made, start=1):
        go(pod, run)
        assert pod.status(run)["output"]["version"] == number


def test_user_code_sees_no_services_no_environment_and_no_token(pod: Any) -> None:
    probe = (
        REVIEW
        + """

import importlib.util
import json
import os
import sys

FOUND = json.dumps({
    "environment": sorted(os.environ),
    "services": [n for n in ("jr2_runtime", "fastapi", "uvicorn", "kopf", "jr2_cli", "pytest")
                 if importlib.util.find_spec(n)],
    "modules": [n for n in sys.modules if n.startswith("jr2_runtime")],
})
raise RuntimeError(FOUND)
"""
    )
    pod.start_worker()
    pod.start_orchestrator()
    answer = pod.publish(
        pod.assembly({"review": probe.replace("from __future__ import annotations", "")})
    )
    assert answer.status_code == 422
    (problem,) = answer.json()["problems"]
    found = json.JSONDecoder().raw_decode(problem[problem.index("{") :])[0]
    assert found["environment"] == [
        "HOME",
        "LANG",
        "PATH",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONNOUSERSITE",
    ]
    assert found["services"] == []
    assert found["modules"] == []


@pytest.mark.parametrize("seed", range(2))
def test_a_kill_in_the_middle_of_a_publish_leaves_one_whole_assembly(pod: Any, seed: int) -> None:
    pod.start_worker()
    main = pod.start_orchestrator()
    made = [pod.assembly(version(number)) for number in range(4)]
    assert pod.publish(made[0]).status_code == 201
    parked = pod.start_run("review")
    published = [made[0].hash]

    def publish() -> None:
        with contextlib.suppress(httpx2.TransportError):
            for number in range(1, 1000):
                assembly = made[1 + number % 3]
                assert pod.publish(assembly).status_code == 201
                published.append(assembly.hash)

    publishing = threading.Thread(target=publish)
    publishing.start()
    wait_for("two are published", lambda: len(published) > 2)
    time.sleep(0.13 * (seed + 1))  # somewhere in the next one
    pod.kill(main)
    publishing.join()
    pod.start_orchestrator()

    current = pod.assemblies()["current"]
    following = made[1 + len(published) % 3].hash
    assert current in (published[-1], following)
    assert folders(pod) == set(held(pod)) == {current, made[0].hash}
    assert not list((pod.folder / "state" / "incoming").iterdir())
    go(pod, parked)
    assert pod.status(parked)["output"]["version"] == 0
    go(pod, pod.start_run("review"))
