"""The types as an author meets them: mypy sees each mistake of the authoring surface, and no other.

The files in `tests/typing/` are checked as an Instance's are: strict, with pydantic's plugin.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
FILES = ROOT / "tests" / "typing"


def check(tmp_path: Path, *names: str) -> dict[str, set[int]]:
    """Return the lines with a type error, by file name."""
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\nplugins = pydantic.mypy\npython_version = 3.11\n")
    cache = ROOT / ".mypy_cache" / "typing"
    run = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file", config, "--cache-dir", cache),
            *(FILES / name for name in names),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found: dict[str, set[int]] = {name: set() for name in names}
    for line in run.stdout.splitlines():
        error = re.match(r"(.+?):(\d+): error:", line)
        if error:
            found.setdefault(Path(error[1]).name, set()).add(int(error[2]))
    return found


def test_mypy_sees_each_mistake_and_nothing_else(tmp_path: Path) -> None:
    bad = (FILES / "authoring_bad.py").read_text().splitlines()
    refused = {number for number, line in enumerate(bad, 1) if line.endswith("# refused")}

    found = check(tmp_path, "authoring_good.py", "authoring_bad.py")

    assert len(refused) > 25
    assert found == {"authoring_good.py": set(), "authoring_bad.py": refused}
