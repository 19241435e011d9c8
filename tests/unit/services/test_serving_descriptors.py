"""A program takes as many descriptors as it may have, and leaves some beside its connections."""

from __future__ import annotations

import subprocess
import sys

import pytest

SHOW = (
    "import resource; from jr2_runtime.serving.descriptors import connections_that_fit;"
    " print(connections_that_fit(4096), resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
)


@pytest.mark.parametrize(
    ("limit", "fit", "soft"),
    [("64:600", 344, 600), ("600:600", 344, 600), ("100:300", 150, 300), ("100:8000", 4096, 8000)],
)
def test_connections_leave_some_descriptors(limit: str, fit: int, soft: int) -> None:
    done = subprocess.run(
        ["prlimit", f"--nofile={limit}", sys.executable, "-c", SHOW],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(fit), str(soft)]
