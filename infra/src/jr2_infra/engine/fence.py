"""May this provider still write: its command lives, and its Leases are still its command's.

A provider asks before each external write. Its plugin is killed with its command, but between the
death of a command and that of its plugin a write could happen; and a run of another host may have
taken a Lease over: that of the Instance, or that of what the Instances share.

Source: design §5.2 (fencing).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jr2.errors import StepFailed

from .. import kube, process_table
from ..lease import loss_of
from . import run_file


def check(run: Mapping[str, str]) -> None:
    """Return when a write is still ours to make.

    Args:
        run: what the command told its providers.

    Raises:
        StepFailed: the command is gone, it never took a Lease, or another run has one of them.
    """
    pid, start = run[run_file.WRAPPER_PID], run[run_file.WRAPPER_START]
    if not process_table.is_running(int(pid), start):
        raise StepFailed("the `jr2 up` that started this step is gone; nothing more is written")
    leases = run_file.leases_of(run) if run.get(run_file.LEASES) else []
    if not leases:
        raise StepFailed("this step was started without a Lease; nothing is written")
    context = kube.load_context(None, {"KUBECONFIG": str(Path(run[run_file.KUBECONFIG]))})
    with context.http() as http:
        for space, nonce in leases:
            loss = loss_of(http, space, nonce)
            if loss is not None:
                raise StepFailed(f"{loss}; nothing more is written here")
