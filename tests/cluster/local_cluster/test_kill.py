"""What is killed comes back, and pods and data do not notice."""

from __future__ import annotations

import os
import secrets
import signal
import time
from pathlib import Path

import pytest

from jr2_cli.local_cluster import layout, report
from tests.waiting import wait_for

from .conftest import Machine, Witness, cluster_processes, kill_everything

pytestmark = pytest.mark.cluster

PROCESSES = (
    "etcd", "containerd", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
    "kubelet", "kube-proxy", "coredns", "kube-router", "local-path-provisioner", "buildkitd",
)  # fmt: skip


def new_text() -> str:
    return f"note-{secrets.token_hex(4)}"


def entry_of(machine: Machine, name: str) -> report.ProcessReport:
    return next(entry for entry in machine.report().processes if entry.name == name)


def test_each_process_that_is_killed_comes_back_and_the_pod_goes_on(
    running: Machine, witness: Witness
) -> None:
    text = new_text()
    witness.note(text)
    container = witness.container()
    assert set(running.pids()) == set(PROCESSES)
    for name in PROCESSES:
        before = entry_of(running, name)
        assert before.pid is not None
        os.kill(before.pid, signal.SIGKILL)

        def is_back(name: str = name, before: report.ProcessReport = before) -> bool:
            entry = entry_of(running, name)
            return (
                running.is_healthy()
                and entry.pid not in (None, before.pid)
                and entry.restarts == before.restarts + 1
                and entry.last_exit == -signal.SIGKILL
            )

        wait_for(f"{name} is back", is_back)
    witness.check(text)
    witness.kubectl("create", "configmap", new_text())
    assert witness.container() == container


def test_a_new_supervisor_takes_over_from_one_that_was_killed(
    running: Machine, witness: Witness
) -> None:
    text = new_text()
    witness.note(text)
    container, before = witness.container(), running.pids()
    supervisor = running.status()["supervisor"]["pid"]

    os.kill(supervisor, signal.SIGKILL)
    wait_for("the supervisor is gone", lambda: running.report().state == "unsupervised")
    assert running.pids() == before
    running.jr2("status", code=1)
    said = running.jr2("start")

    assert "cluster: up in" in said
    assert running.is_healthy()
    assert not set(before.values()) & set(running.pids().values())
    wait_for("the pod is there", witness.is_up)
    witness.check(text)
    assert witness.container() == container


def test_all_killed_at_once_lose_no_data(running: Machine, witness: Witness) -> None:
    text = new_text()
    witness.note(text)
    container, restarts = witness.container()
    began = time.time()

    kill_everything()
    assert running.status()["state"] == "stopped"
    running.jr2("start")

    assert running.is_healthy()
    assert all(
        entry["ageSeconds"] <= time.time() - began for entry in running.status()["processes"]
    )
    wait_for("the pod is there again", lambda: witness.container() != (container, restarts))
    wait_for("the pod is ready", witness.is_up)
    witness.check(text)


def test_stop_leaves_no_process_and_start_goes_on_with_the_data(
    running: Machine, witness: Witness
) -> None:
    text = new_text()
    witness.note(text)
    container, _ = witness.container()

    running.jr2("stop")

    assert cluster_processes() == set()
    assert running.status()["state"] == "stopped"
    running.jr2("start")
    assert running.is_healthy()
    wait_for("the pod is there again", lambda: witness.container()[0] != container)
    wait_for("the pod is ready", witness.is_up)
    witness.check(text)
    assert not list(Path(layout.STATE_FOLDER).glob("*.part"))
