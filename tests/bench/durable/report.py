"""`scripts/bench`: measure, print the table, and put it into BENCHMARKS.md when asked.

The peers have an environment of their own, made once with uv below the home folder and named by
what `requirements/bench.txt` says.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import platform
import subprocess
import sys
from pathlib import Path

from jr2 import kernel

from . import parked
from .measure import Counts, of_parked, parked_table, rows, table

ROOT = Path(__file__).parents[3]
PINS = ROOT / "requirements" / "bench.txt"
PAGE = ROOT / "BENCHMARKS.md"
BEGIN, END = "<!-- durable runs: begin -->", "<!-- durable runs: end -->"


def peers() -> str:
    """Return the interpreter of the peers' environment, which is made when it is not there."""
    # Of the same interpreter as ours: some builds of Python are half as quick as others.
    made_of = PINS.read_bytes() + sys.version.encode() + sys.base_prefix.encode()
    digest = hashlib.sha256(made_of).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "jr2" / f"bench-{digest}"
    python, made = folder / "bin" / "python", folder / "made"
    if not made.exists():
        uv = str(Path(sys.executable).with_name("uv"))
        if not Path(uv).exists():
            uv = "uv"
        for command in (
            [uv, "venv", "-q", "--clear", "-p", sys.executable, str(folder)],
            [
                uv,
                "pip",
                "install",
                "-q",
                "--require-hashes",
                "--python",
                str(python),
                "-r",
                str(PINS),
            ],
        ):
            subprocess.run(command, check=True)
        made.touch()
    return str(python)


def main(arguments: list[str]) -> int:
    """Measure and print; return 1 when a bound does not hold."""
    counts = Counts()
    waiting = [parked.measure(runs) for runs in counts.parked]
    measured = [*rows(peers(), counts), *of_parked(waiting)]
    text = f"{table(measured)}\n\n{parked_table(waiting)}"
    print(text)
    if "--write" in arguments:
        when = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        cores = os.cpu_count()
        code = "machine code" if str(kernel.__file__).endswith(".so") else "Python"
        head = (
            f"{when}, {cores} cores, {platform.machine()}, Python {platform.python_version()}; "
            f"the kernel is {code}."
        )
        page = PAGE.read_text()
        before, _, rest = page.partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{head}\n\n{text}\n{END}{rest.partition(END)[2]}")
    return 0 if all(row.holds for row in measured) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
