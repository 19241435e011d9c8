"""A cluster from nothing to nothing: what `create` makes, `delete` takes away."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jr2_cli.local_cluster import layout
from jr2_cli.local_cluster.supervision import remains
from tests.waiting import LIMIT, wait_for

from .conftest import Machine, Witness, inventory, run

pytestmark = pytest.mark.cluster

OTHERS = """\
# kept by hand
apiVersion: v1
kind: Config
clusters:
- cluster:
    server: https://prod.example:443
  name: prod
contexts:
- context:
    cluster: prod
    user: "me"
  name: prod
users:
- name: me
  user:
    token: abc # from the vault
"""
CURRENT = "apiVersion: v1\nkind: Config\ncurrent-context: prod\n"


def difference(before: dict[str, list[str]], after: dict[str, list[str]]) -> dict[str, Any]:
    return {
        kind: {
            "left": [item for item in after[kind] if item not in before[kind]],
            "gone": [item for item in before[kind] if item not in after[kind]],
        }
        for kind in before
        if before[kind] != after[kind]
    }


def test_delete_without_a_cluster_leaves_what_another_kubernetes_has(
    no_cluster: None, machine: Machine
) -> None:
    run("nft", "add", "table", "ip6", "kube-proxy")
    try:
        before = inventory()

        assert "there is no local cluster" in machine.jr2("delete", "--yes")

        assert "table ip6 kube-proxy {" in before["tables"]
        assert difference(before, inventory()) == {}
    finally:
        run("nft", "delete", "table", "ip6", "kube-proxy")


def test_two_creates_make_one_cluster_and_delete_leaves_nothing_of_it(
    no_cluster: None,
    machine: Machine,
    new_witness: Callable[[], Witness],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(OTHERS)
    first.chmod(0o640)
    second.write_text(CURRENT)
    monkeypatch.setattr(machine, "kubeconfig", f"{first}{os.pathsep}{second}")
    request.addfinalizer(lambda: machine.jr2("delete", "--yes"))
    before = inventory()

    creates = [machine.start("create") for _ in range(2)]
    said = [child.communicate(timeout=LIMIT)[1] for child in creates]

    assert [child.returncode for child in creates] == [0, 0], said
    assert ["cluster: runs already" in text for text in sorted(said, key=len)] == [True, False]
    assert all("ready: context jr2-local" in text for text in said)
    status = machine.status()
    assert {e["name"]: (e["healthy"], e["restarts"]) for e in status["processes"]} == {
        e["name"]: (True, 0) for e in status["processes"]
    }
    assert all(entry["version"] and entry["memoryBytes"] for entry in status["processes"])
    assert status["supervisor"]["memoryBytes"] > 0
    assert "current-context" not in first.read_text()
    assert "# from the vault" in first.read_text()
    new_witness()
    during = difference(before, inventory())
    assert set(during) >= {"processes", "mounts", "devices", "tables", "sets", "groups", "files"}

    machine.jr2("delete", "--yes")

    assert difference(before, inventory()) == {}
    assert (first.read_text(), first.stat().st_mode & 0o777) == (OTHERS, 0o640)
    assert second.read_text() == CURRENT
    assert machine.status()["state"] == "absent"


def test_a_create_that_was_killed_is_finished_by_the_next_verb(
    no_cluster: None, machine: Machine
) -> None:
    before = inventory()
    files = layout.Layout()

    def kill_half_way() -> None:
        child = machine.start("create")
        wait_for("containerd runs", files.containerd_socket.exists)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert remains.is_running(files.supervisor_lock)

    kill_half_way()
    machine.jr2("delete", "--yes")
    assert difference(before, inventory()) == {}

    kill_half_way()
    assert "cluster: up in" in machine.jr2("create")
    assert machine.is_healthy()
