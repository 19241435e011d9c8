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
from typing import Final

from . import processes
from .port_forward import PortForward
from .rollout.workload import LIMIT_SECONDS, Workload

_GAVE_UP: Final = "timed out waiting for the condition"


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
            f"{workload.kind.lower()}/{workload.name} --timeout={LIMIT_SECONDS}s"
        )
        self._words: str | None = None
        self._child = processes.start(
            [kubectl, *self._said.split(" ")[1:]], env=environment(kubeconfig)
        )

    def last_words(self) -> str | None:
        """Return the last words of a kubectl whose own limit passed; `None` else.

        One that ended before, because it lost its connection, has nothing to say of the rollout.
        """
        if self._words is None and self._child.poll() not in (None, 0):
            self._words = self._child.communicate()[1].strip()
        if self._words is None or _GAVE_UP not in self._words:
            return None
        return f"Command failed: {self._said}\n{self._words}"

    def stop(self) -> None:
        """End kubectl, if it still waits."""
        processes.stop(self._child)
        for stream in (self._child.stdout, self._child.stderr):
            if stream is not None:
                stream.close()
