"""What the code of a Workflow may try from inside: it ends its own run, and gets nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from jr2 import names
from jr2_runtime.worker.spawn import ENVIRONMENT
from tests.chaos.conftest import Pod
from tests.chaos.load import children
from tests.waiting import LIMIT, wait_for

WORKFLOWS = Path(__file__).parent / "workflows"
NOBODY = 65534


@pytest.fixture
def thief(pod: Pod) -> Pod:
    pod.start_worker()
    pod.start_orchestrator()
    sources = {name: (WORKFLOWS / f"{name}.py").read_text() for name in ("thief", "ledger")}
    assert pod.publish(pod.assembly(sources)).status_code == 201
    return pod


def send(pod: Pod, run: str, event: dict[str, Any], gate: str = "waiting") -> httpx2.Response:
    answer = pod.client.post(f"/runs/{run}/gates/{gate}/events", json=event)
    assert answer.status_code == 200, answer.text
    return answer


def test_a_step_that_wants_too_much_memory_faults_its_run_with_the_reason(thief: Pod) -> None:
    bad, good = thief.start_run("thief"), thief.start_run("ledger")

    send(thief, bad, {"type": "leak", "megabytes": 4000})

    ended = thief.status(bad)
    assert (ended["status"], "MemoryError" in ended["fault"]) == ("error", True)
    send(thief, good, {"type": "note", "number": 1}, "writing")
    assert thief.status(good)["context"]["numbers"] == [1]


def test_a_leak_over_many_steps_is_no_fault_of_the_runs_beside_it(thief: Pod) -> None:
    leaking, good = thief.start_run("thief"), thief.start_run("ledger")
    # More than twice what a process may have, and in each round a step of another run.
    for number in range(16):
        send(thief, leaking, {"type": "leak", "megabytes": 50})
        send(thief, good, {"type": "note", "number": number}, "writing")

    assert thief.status(good)["context"]["numbers"] == list(range(16))
    assert thief.status(leaking)["status"] == "active"
    assert "holds too much memory, and ends" in thief.log("worker")


def test_a_process_that_was_left_behind_ends_with_the_one_that_left_it(thief: Pod) -> None:
    run, marker = thief.start_run("thief"), thief.folder / "left"

    send(thief, run, {"type": "fork", "marker": str(marker)})

    ended = thief.status(run)
    assert (ended["status"], "ended" in ended["fault"]) == ("error", True)
    left = int(marker.read_text())
    wait_for("the end of what was left behind", lambda: not os.path.exists(f"/proc/{left}"))


def test_what_is_printed_is_logged_and_is_no_reply(thief: Pod) -> None:
    run = thief.start_run("thief")

    send(thief, run, {"type": "say"})

    assert thief.status(run)["context"]["notes"] == {"said": "yes"}
    assert "a word that is no reply\nanother\n" in thief.log("worker")


@pytest.mark.skipif(os.getuid() != 0, reason="a worker with a user of its own needs root")
def test_a_worker_with_its_own_user_reads_nothing_of_the_orchestrator(pod: Pod) -> None:
    # In its container the worker sees no path of these at all; here its user alone keeps it out.
    interpreter = Path(pod.folder / "python")
    unneeded = shutil.ignore_patterns(
        "site-packages", "test", "__pycache__", "*.a", "share", "include"
    )
    shutil.copytree(Path(sys.base_prefix), interpreter, symlinks=True, ignore=unneeded)
    python = interpreter / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    pod.folder.chmod(0o711)
    (pod.folder / "values").chmod(0o700)
    settings = {"JR2_WORKER_UID": str(NOBODY), "JR2_PYTHON": str(python)}
    kit = pod.folder / "kit"
    for link in list(kit.iterdir()):
        real = link.resolve()
        link.unlink()
        (shutil.copytree if real.is_dir() else shutil.copy)(real, link)
    services = Path(pod.folder / "services")
    shutil.copytree(Path(sys.modules["jr2_runtime"].__path__[0]), services / "jr2_runtime")
    (pod.folder / "run").mkdir()
    os.chown(pod.folder / "run", NOBODY, NOBODY)
    settings["JR2_WORKER_SOCKET"] = str(pod.folder / "run" / "s")
    main = pod.start_orchestrator(**settings)
    sources = {"thief": (WORKFLOWS / "thief.py").read_text()}
    with (pod.folder / "worker.log").open("ab") as output:
        worker = subprocess.Popen(
            [str(python), "-m", "jr2_runtime.worker"],
            env={**pod.environment(), **settings, "PYTHONPATH": f"{services}:{kit}"},
            cwd="/",
            stderr=output,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
        )
    try:
        assert pod.publish(pod.assembly(sources)).status_code == 201, pod.log("worker")
        parked = pod.start_run("thief")
        [sibling] = children(worker.pid)
        other = (WORKFLOWS / "thief.py").read_text() + "# other\n"
        assert pod.publish(pod.assembly({"thief": other})).status_code == 201, pod.log("worker")
        state = pod.folder / "state"
        files = [
            str(state / names.STATE_DATABASE),
            str(pod.folder / "values" / names.FILE_SIGNING_KEY),
            str(pod.folder / "values" / names.FILE_PUBLISH_TOKEN_DIGEST),
            f"/proc/{main.pid}/environ",
            f"/proc/{main.pid}/mem",
            f"/proc/{worker.pid}/environ",
            f"/proc/{worker.pid}/mem",
            f"/proc/{sibling}/environ",
            f"/proc/{sibling}/mem",
            names.SERVICE_ACCOUNT_PATH + "/token",
        ]
        run = pod.start_run("thief")
        event = {"type": "pry", "files": files, "process": main.pid}
        send(pod, run, event)
        notes = pod.status(run)["context"]["notes"]
        assert pod.status(parked)["status"] == "active"
        assert sibling in children(worker.pid)
    finally:
        worker.terminate()
        worker.wait(timeout=LIMIT)
    assert notes.pop("environment").split() == sorted(ENVIRONMENT)
    refused = {"PermissionError", "FileNotFoundError"}
    got = {what: outcome for what, outcome in notes.items() if outcome not in refused}
    # The supervisor and the process of the other Assembly have the same user, and are hidden.
    assert got == {}


def test_two_assemblies_with_two_versions_of_one_package_run_side_by_side(pod: Pod) -> None:
    pod.start_worker()
    pod.start_orchestrator()
    source = (WORKFLOWS / "review.py").read_text()
    uses = source.replace("VERSION = 1", "from wording import VERSION")
    assert uses != source
    runs = []
    for version in (1, 2):
        packages = {"wording": f"VERSION = {version}\n"}
        assembly = pod.assembly({"review": uses}, packages=packages)
        assert pod.publish(assembly).status_code == 201
        runs.append(pod.start_run("review"))

    for run in (*runs, *reversed(runs)):
        assert pod.status(run)["status"] == "active"
    for version, run in reversed(list(enumerate(runs, start=1))):
        send(pod, run, {"type": "go"}, "review")
        assert pod.status(run)["output"]["version"] == version
