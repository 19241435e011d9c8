"""Certificates renewed while the cluster runs, also in the kubeconfigs that hold jr2's own.

The supervisor runs this again and again, as a program of its own: a certificate that is renewed is
read by its process from its file, so no process and no pod is started again. A verb that is at work
renews by itself, so this one then leaves it to that.

Run as `python -m jr2_cli.local_cluster.renewal <state folder>`.

Source: design §7.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

from jr2.errors import StepFailed

from . import kubeconfig, verb_lock
from .definition import certificates
from .layout import Layout
from .record import read_record


def renew(files: Layout, now: datetime.datetime | None = None) -> list[str]:
    """Renew what is old, and give the kubeconfigs that hold the context what is new.

    Args:
        files: where the cluster lies.
        now: the time; `None` is now.

    Returns:
        What could not be done, as texts; the rest was done.
    """
    certificates.ensure_certificates(files, now)
    record = read_record(files)
    return refresh_kubeconfigs(files, () if record is None else record.kubeconfigs)


def refresh_kubeconfigs(files: Layout, paths: tuple[Path, ...]) -> list[str]:
    """Give each kubeconfig that still has the context the certificates of now.

    Args:
        files: where the cluster lies.
        paths: the kubeconfigs.

    Returns:
        What could not be done, as texts.
    """
    entries = kubeconfig.admin_entries(files)
    problems = []
    for path in paths:
        try:
            kubeconfig.refresh(path, entries)
        except StepFailed as error:
            problems.append(error.message)
    return problems


def main(arguments: list[str]) -> int:
    """Renew in the state folder that the one argument names."""
    files = Layout(Path(arguments[0]))
    with verb_lock.hold_if_free(files.root.parent) as is_ours:
        problems = renew(files) if is_ours else []
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
