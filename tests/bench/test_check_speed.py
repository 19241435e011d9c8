"""How fast `jr2 check` is when nothing changed, beside what cannot be saved and what is saved.

The floor is one interpreter that imports the Instance's config and Workflows. The processor time of
whole process trees is compared, the best of several turns, so that a busy machine counts little.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jr2_infra.scaffold import scaffold
from tests.reporter import Reporter
from tests.unit.infra.conftest import make_environment

TURNS = 5
FLOOR = "import sys; sys.path.insert(0, '.'); import jr2_config, runpy; runpy.run_path('workflows/ping.py')"


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    root = tmp_path / "my-instance"
    scaffold(root, None, None, Reporter(warns=True))
    make_environment(root)
    shutil.copy(Path(sys.executable).with_name("mypy"), root / ".venv" / "bin" / "mypy")
    return root


def seconds(root: Path, *command: str | Path) -> float:
    """Return the processor time of a command and of all that it waits for."""
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, said.decode()
    return usage.ru_utime + usage.ru_stime


def test_an_unchanged_check_costs_a_few_starts_of_python(
    instance: Path, record_property: Callable[[str, object], None]
) -> None:
    python = instance / ".venv" / "bin" / "python"
    check = (sys.executable, "-m", "jr2_cli", "check")
    cold = seconds(instance, *check)

    floors, warms = [], []
    for _ in range(TURNS):
        floors.append(seconds(instance, python, "-c", FLOOR))
        warms.append(seconds(instance, *check))

    floor, warm = min(floors), min(warms)
    print(f"floor {floor:.2f} s, warm {warm:.2f} s ({warm / floor:.1f}×), cold {cold:.2f} s")
    record_property("warm_to_floor", round(warm / floor, 2))
    assert warm <= 6 * floor
    assert warm <= 0.5 * cold
