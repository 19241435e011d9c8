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

WORKFLOWS = Path(__file__).parent / "workflows"


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
    try:
        yield state
    finally:
        pod.close()
        subprocess.run(["umount", "-l", str(state)], check=True)


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
    end = time.monotonic() + 30
    while note(first, number + 1) == 507:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert pod.status(first)["context"]["numbers"] == [*numbers, number + 1]
    assert (small_volume / "ballast").exists()
    made = pod.backup("now")
    assert made.returncode == 0, made.stderr
