"""The programs that the Converge starts, as the command found them.

The Converge does not look for programs: the command does (design §7) and hands over their places,
when the Converge asks for them: what refuses before that must not be hidden by a missing program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalImport:
    """How an image reaches the nodes of the local cluster.

    Args:
        ctr: the client of containerd.
        socket: the absolute path of containerd's socket.
        server: the API server's address; the import is for a context with this address only.
        buildctl: the client of its BuildKit; `None` when it is not installed.
        buildkit: the absolute path of the socket of its BuildKit.
    """

    ctr: Path
    socket: Path
    server: str
    buildctl: Path | None = None
    buildkit: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """The places of the programs that a converge starts beside the engine.

    Args:
        kubectl: for port-forwards and for the words of a rollout.
        local_import: present when `jr2 cluster status` shows a running local cluster.
        kind: the program, when it is on PATH.
        docker: the program, when it is on PATH; it reaches the nodes of a kind cluster.
    """

    kubectl: Path
    local_import: LocalImport | None = None
    kind: Path | None = None
    docker: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tooling(Programs):
    """All programs of `jr2 up`, which starts the engine itself.

    Args:
        pulumi: the engine.
        kubernetes_plugin: `pulumi-resource-kubernetes`.
    """

    pulumi: Path
    kubernetes_plugin: Path


FindPrograms = Callable[[], Programs]
"""Returns the programs; raises a `StepFailed` that names those that are missing."""

FindTooling = Callable[[], Tooling]
"""Returns the programs; raises a `StepFailed` that names those that are missing."""
