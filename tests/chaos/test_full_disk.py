"""A state volume that is full: nothing acknowledged is lost, and runs can be read and cancelled."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.load import under_load
from tests.waiting import LIMIT, wait_for

WORKFLOWS = Path(__file__).parent / "workflows"


def mounted_for(pod: Any, state: Path) -> Iterator[Path]:
    """Yield a state folder that is mounted, and take it from under the pod when it is over."""
    try:
        yield state
    finally:
        pod.close()
        subprocess.run(["umount", "-l", str(state)], check=True)


@pytest.fixture
def small_volume(pod: Any) -> Iterator[Path]:
    """The pod's state folder as a file system of 200 MiB."""
    state: Path = pod.folder / "state"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(state)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode != 0:
        pytest.skip("a small file system needs root: " + mounted.stderr.decode().strip())
    yield from mounted_for(pod, state)


@pytest.fixture
def volume_on_a_disk(pod: Any) -> Iterator[Path]:
    """The pod's state folder as an ext4 of 200 MiB, whose syncs and journal are real."""
    state: Path = pod.folder / "state"
    disk: Path = pod.folder / "disk"
    with disk.open("wb") as file:
        file.truncate(200 * 2**20)
    # No blocks are kept for root, which the test may be.
    for command in (
        ["mkfs.ext4", "-q", "-m", "0", str(disk)],
        ["mount", "-o", "loop", str(disk), str(state)],
    ):
        done = subprocess.run(command, check=False, capture_output=True)
        if done.returncode != 0:
            pytest.skip("a file system of its own needs root: " + done.stderr.decode().strip())
    yield from mounted_for(pod, state)


def fill(volume: Path) -> Path:
    """Take every byte that is free."""
    filler = volume / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (2**20, 2**12):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass
    return filler


def test_a_full_disk_leaves_runs_that_can_be_read_and_cancelled(
    pod: Any, small_volume: Path
) -> None:
    pod.start_worker()
    pod.start_orchestrator()
    source = {"ledger": (WORKFLOWS / "ledger.py").read_text()}
    assert pod.publish(pod.assembly(source)).status_code == 201
    first, second = pod.start_run("ledger"), pod.start_run("ledger")
    assert (small_volume / "ballast").stat().st_size == 64 * 2**20

    def note(run: str, number: int) -> int:
        answer = pod.client.post(
            f"/runs/{run}/gates/writing/events", json={"type": "note", "number": number}
        )
        assert answer.status_code in (200, 507), answer.text
        return int(answer.status_code)

    filler = fill(small_volume)
    number = 0
    while note(first, number + 1) == 200:  # the log of the store has some room of its own
        number += 1
        assert number < 10_000
    assert not (small_volume / "ballast").exists()
    numbers = list(range(1, number + 1))
    assert pod.status(first)["context"]["numbers"] == numbers
    assert note(second, 1) == 507
    cancelled = pod.client.post(f"/runs/{second}/events", json={"type": "CANCEL"})
    assert cancelled.status_code == 200, cancelled.text
    assert pod.status(second)["status"] == "cancelled"
    # The room that is left is for cancelling.
    assert note(first, number + 1) == 507

    backups = sorted(each.name for each in (small_volume / "backups").iterdir())
    refused = pod.backup("now")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "stay free" in refused.stderr
    assert sorted(each.name for each in (small_volume / "backups").iterdir()) == backups

    os.unlink(filler)
    wait_for("there is room again", lambda: note(first, number + 1) == 200)
    assert pod.status(first)["context"]["numbers"] == [*numbers, number + 1]
    assert (small_volume / "ballast").exists()
    made = pod.backup("now")
    assert made.returncode == 0, made.stderr


def test_a_disk_that_is_full_for_a_while_loses_nothing_under_load(
    pod: Any, volume_on_a_disk: Path
) -> None:
    pod.start_worker()
    main = pod.start_orchestrator()
    with under_load(pod) as load:
        for _ in range(3):
            load.progress(12)
            filler = fill(volume_on_a_disk)
            refused = 0
            end = time.monotonic() + LIMIT
            while refused < 20:
                assert time.monotonic() < end, "nothing was refused"
                # The log of the store is written over in place; new runs make the store grow.
                answer = pod.client.post("/workflows/clockwork/runs", json={})
                if answer.status_code == 201:
                    load.others.add(answer.json()["runId"])
                else:
                    assert answer.status_code == 507, answer.text
                    refused += 1
            os.unlink(filler)
        load.progress(12)
    assert main.poll() is None


def test_a_publish_to_a_full_disk_is_refused_and_goes_on_when_there_is_room(
    pod: Any, volume_on_a_disk: Path
) -> None:
    pod.start_worker()
    pod.start_orchestrator()
    ledger = (WORKFLOWS / "ledger.py").read_text()
    first = pod.assembly({"ledger": ledger})
    assert pod.publish(first).status_code == 201
    run = pod.start_run("ledger")
    # All of it arrives, but for its commit.
    second = pod.assembly({"ledger": f"{ledger}\nSECOND = True\n"})
    parcel = second.parcel()
    (missing,) = pod.ask_missing(second, parcel).json()["missing"]

    def send(assembly: Any, digest: str) -> Any:
        content = assembly.parcel().sources[digest].read_bytes()
        return pod.client.put(f"/blobs/{digest}", content=content, headers=pod.publishing())

    assert send(second, missing).status_code == 200
    filler = fill(volume_on_a_disk)
    third = pod.assembly({"ledger": f"{ledger}\nTHIRD = True\n"})
    (digest,) = set(third.parcel().sources) - set(first.parcel().sources)
    for refused, why in (
        (pod.commit(second, parcel), "No space left on device"),
        (send(third, digest), "no room for it"),
        (pod.ask_missing(third, third.parcel()), "no room for the Assembly"),
    ):
        assert refused.status_code == 507, refused.text
        assert why in refused.json()["error"]
    assert pod.assemblies()["current"] == first.hash
    assert not list((volume_on_a_disk / "incoming").iterdir())
    assert pod.status(run)["status"] == "active"

    os.unlink(filler)
    for assembly in (second, third):
        published = pod.publish(assembly)
        assert published.status_code == 201, published.text
    note = {"type": "note", "number": 1}
    answer = pod.client.post(f"/runs/{run}/gates/writing/events", json=note)
    assert answer.status_code == 200, answer.text
