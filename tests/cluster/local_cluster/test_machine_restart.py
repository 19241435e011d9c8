"""A restart of the machine: no process, device, mount or rule is left, and the disk is."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from pathlib import Path

import pytest

from jr2_cli.local_cluster import layout
from jr2_cli.local_cluster.node import cgroups, leftovers, network
from tests.waiting import wait_for

from .conftest import Machine, Witness, kill_everything

pytestmark = pytest.mark.cluster

RUN_FOLDERS = ("/run/containerd", "/run/buildkit", "/run/netns", "/run/xtables.lock")


def restart_machine(files: layout.Layout) -> None:
    """Leave what a restart leaves.

    The machine cannot be given another boot id, so what was written under this one is made to look
    as if it was written under an earlier one.
    """
    kill_everything()
    leftovers.unmount(files.root)
    network.remove()
    trees = cgroups.read_mounts(Path("/proc/mounts").read_text())
    assert trees is not None
    cgroups.remove_group(trees, layout.CGROUP)
    for place in RUN_FOLDERS:
        shutil.rmtree(place, ignore_errors=True)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("0")
    assert files.boot_note.read_text() in Path("/proc/sys/kernel/random/boot_id").read_text()
    files.boot_note.write_text("00000000-0000-0000-0000-000000000000")
    state = json.loads(files.supervisor_state.read_text())
    # The ids of then belong to programs of now, such as this one.
    for entry in state["services"]:
        entry.update(pid=os.getpid(), start=f"earlier-boot/{entry['pid']}")
    files.supervisor_state.write_text(json.dumps(state))


def test_after_a_restart_of_the_machine_start_goes_on_with_the_data(
    running: Machine, witness: Witness
) -> None:
    text = f"note-{secrets.token_hex(4)}"
    witness.note(text)
    container, _ = witness.container()

    restart_machine(layout.Layout())
    assert running.status()["state"] == "stopped"
    running.jr2("start")

    assert running.is_healthy()
    wait_for("the pod is there again", lambda: witness.container()[0] != container)
    wait_for("the pod is ready", witness.is_up)
    witness.check(text)
