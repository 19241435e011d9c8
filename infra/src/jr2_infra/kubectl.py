"""The kubectl programs that a converge starts: a forward to the Orchestrator, and a second waiter.

Each gets a kubeconfig with one context, so that no other setting of the machine decides where it
goes, and each is ended with the block or the wait that it serves.

Source: design §5.4 and §5.7, spec/converge.md §2.3.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from . import processes
from .port_forward import PortForward
from .rollout.decide import Workload
from .rollout.wait import LIMIT_SECONDS


def environment(kubeconfig: Path) -> dict[str, str]:
    """Return the whole environment of a kubectl that speaks to one context."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if key in {"PATH", "HOME", "LANG", "TMPDIR"} or key.upper().endswith("_PROXY")
    }
    return {**kept, "KUBECONFIG": str(kubeconfig)}


@contextlib.contextmanager
def forward(kubectl: Path, kubeconfig: Path, namespace: str, *, signing_key: str) -> Iterator[str]:
    """Open a port-forward to the Orchestrator's Service and give its address, once it is that.

    Args:
        kubectl: the program.
        kubeconfig: a file with one context.
        namespace: the Instance's namespace.
        signing_key: the Instance's, with which the Orchestrator proves itself.

    Raises:
        ForwardFailed: kubectl ended, or nothing answered through its port in time.
        NotTheInstance: something else answered.
    """
    with PortForward(
        kubectl, context=None, namespace=namespace, env=environment(kubeconfig)
    ) as opened:
        opened.wait_until_it_answers(signing_key=signing_key)
        yield opened.url


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
        processes.stop(self._child)
        for stream in (self._child.stdout, self._child.stderr):
            if stream is not None:
                stream.close()
