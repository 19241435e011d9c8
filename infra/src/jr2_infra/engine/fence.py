"""May this provider still write: its command lives, and the Lease is still its command's.

A provider asks before each external write. Its plugin is killed with its command, but between the
death of a command and that of its plugin a write could happen; and a run of another host may have
taken the Lease over.

Source: design §5.2 (fencing).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jr2.errors import StepFailed

from .. import kube, process_table
from ..lease import nonce_of
from . import run_file


def check(run: Mapping[str, str]) -> None:
    """Return when a write is still ours to make.

    Args:
        run: what the command told its providers.

    Raises:
        StepFailed: the command is gone, or another run has the Lease.
    """
    pid, start = run[run_file.WRAPPER_PID], run[run_file.WRAPPER_START]
    if not process_table.is_running(int(pid), start):
        raise StepFailed("the `jr2 up` that started this step is gone; nothing more is written")
    nonce = run.get(run_file.LEASE_NONCE)
    if not nonce:
        return
    context = kube.load_context(None, {"KUBECONFIG": str(Path(run[run_file.KUBECONFIG]))})
    with context.http() as http:
        held = nonce_of(http, run[run_file.LEASE_NAMESPACE])
    if held != nonce:
        raise StepFailed("another `jr2 up` took over this converge; nothing more is written here")
