"""`jr2-orchestrator backup …`: for a person with a shell in the pod, beside the running program.

`list` names the backups, `now` makes one, `read <name>` writes one to stdout, so that it can be kept
elsewhere, and `write <name>` takes one from stdin again.

Source: ADR-0143.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Sequence

from jr2 import names

from ..settings import read_settings
from .copies import BackupFailed, Backups


def run(arguments: Sequence[str]) -> int:
    """Run one call; return the exit code."""
    parser = argparse.ArgumentParser(prog="jr2-orchestrator backup", allow_abbrev=False)
    parser.add_argument("what", choices=("list", "now", "read", "write"))
    parser.add_argument("name", nargs="?")
    given = parser.parse_args(list(arguments))
    if (given.name is None) == (given.what in ("read", "write")):
        parser.error(f"{given.what} takes {'the' if given.name is None else 'no'} name of a backup")
    settings = read_settings([], os.environ)
    backups = Backups(settings.state, settings.state / names.STATE_DATABASE)
    try:
        if given.what == "list":
            for name in backups.names():
                print(name)
        elif given.what == "now":
            print(backups.make(time.time_ns() // 1_000_000))
        elif given.what == "read":
            with backups.path(given.name).open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
        else:
            backups.take(given.name, sys.stdin.buffer.read())
            print(given.name)
    except (BackupFailed, OSError) as failed:
        print(f"error: {failed}", file=sys.stderr)
        return 1
    return 0
