"""The kubectl programs that a converge starts: a forward to the Orchestrator, and a second waiter.

Each gets a kubeconfig with one context, so that no other setting of the machine decides where it
goes, and each is ended with the block or the wait that it serves.

Source: design §5.4 and §5.7, spec/converge.md §2.3.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jr2 import names
from jr2.errors import StepFailed

from . import processes
from .rollout.decide import Workload
from .rollout.wait import LIMIT_SECONDS

if TYPE_CHECKING:
    import subprocess

_FORWARDING: Final = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) ->")
_FORWARD_SECONDS: Final = 20.0
_END_SECONDS: Final = 5.0


def environment(kubeconfig: Path) -> dict[str, str]:
    """Return the whole environment of a kubectl that speaks to one context."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if key in {"PATH", "HOME", "LANG", "TMPDIR"} or key.upper().endswith("_PROXY")
    }
    return {**kept, "KUBECONFIG": str(kubeconfig)}


@contextlib.contextmanager
def forward(kubectl: Path, kubeconfig: Path, namespace: str) -> Iterator[str]:
    """Open a port-forward to the Orchestrator's Service and give its address.

    Args:
        kubectl: the program.
        kubeconfig: a file with one context.
        namespace: the Instance's namespace.

    Raises:
        StepFailed: kubectl did not announce a port in time.
    """
    child = processes.start(
        [
            kubectl,
            "--namespace",
            namespace,
            "port-forward",
            "--address",
            "127.0.0.1",
            f"service/{names.ORCHESTRATOR}",
            f":{names.ORCHESTRATOR_PORT}",
        ],
        env=environment(kubeconfig),
    )
    try:
        yield f"http://127.0.0.1:{_announced_port(child)}"
    finally:
        _end(child)


class RolloutStatus:
    """`kubectl rollout status`, whose words are kept for the moment that its limit passes."""

    def __init__(self, kubectl: Path, kubeconfig: Path, workload: Workload) -> None:
        self._said = (
            f"kubectl --namespace {workload.namespace} rollout status "
            f"deployment/{workload.name} --timeout={LIMIT_SECONDS}s"
        )
        self._child = processes.start(
            [kubectl, *self._said.split(" ")[1:]], env=environment(kubeconfig)
        )

    def last_words(self) -> str | None:
        """Return the last words of a kubectl that gave up; `None` else."""
        if self._child.poll() in (None, 0):
            return None
        _, stderr = self._child.communicate()
        return f"Command failed: {self._said}\n{stderr.strip()}"

    def stop(self) -> None:
        """End kubectl, if it still waits."""
        _end(self._child)


def _announced_port(child: subprocess.Popen[str]) -> int:
    """Read kubectl's first lines until it names its local port."""
    assert child.stdout is not None
    deadline = time.monotonic() + _FORWARD_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if not selector.select(left):
                break
            line = child.stdout.readline()
            if not line:
                # It closed its output, so it is about to end.
                with contextlib.suppress(processes.TimeoutExpired):
                    child.wait(_END_SECONDS)
                break
            found = _FORWARDING.search(line)
            if found:
                return int(found[1])
    if child.poll() is None:
        raise StepFailed(
            f"kubectl port-forward to {names.ORCHESTRATOR} named no port in {_FORWARD_SECONDS:.0f}s"
        )
    _, stderr = child.communicate()
    words = stderr.strip().splitlines()
    raise StepFailed(
        f"kubectl port-forward to {names.ORCHESTRATOR} ended"
        + (f": {words[-1]}" if words else f" with {child.returncode}")
    )


def _end(child: subprocess.Popen[str]) -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(_END_SECONDS)
        except processes.TimeoutExpired:
            child.kill()
            child.wait()
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()
