"""The way from this machine to the Orchestrator, for one command.

The forward is closed with the command, whichever way the command ends.

Source: spec/converge.md §2.3, design §5.7 and §6.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from jr2_infra import port_forward
from jr2_infra.port_forward import ForwardFailed

from . import processes

__all__ = ["ForwardFailed", "PortForward"]


_ERROR = re.compile(r"error:|E\d{4} |Unable to |Error from server")
"""How a line of kubectl starts that is more than a warning."""


class PortForward(port_forward.PortForward):
    """An open forward whose kubectl lives no longer than this command.

    Args:
        kubectl: the program.
        context: the context of the kubeconfig.
        namespace: the namespace of the Instance.
        env: the environment that kubectl reads its kubeconfig from; `None` is what other programs
            inherit of ours.
        ready_within: seconds until the port must be announced.

    Raises:
        ForwardFailed: kubectl ended, or said no port in time.
    """

    def __init__(
        self,
        kubectl: Path,
        *,
        context: str,
        namespace: str,
        env: Mapping[str, str] | None = None,
        ready_within: float = port_forward.READY_WITHIN,
    ) -> None:
        super().__init__(
            kubectl,
            context=context,
            namespace=namespace,
            env=env,
            ready_within=ready_within,
            start=processes.start,
            stop=processes.stop,
        )

    @property
    def complained(self) -> bool:
        """Whether kubectl said an error; it may go on all the same."""
        return any(_ERROR.match(line) for line in list(self._said))
