"""What a step needs beside its inputs: the cluster, the programs, the Lease and a voice.

Inputs stand in a plan and in a preview, so they are few and readable. What a step merely uses
comes from its run: where kubectl is, which archive was written, who holds the Lease.

Source: design §5.2 (providers check the Lease and their parent before each external write).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..api import Api
from ..tooling import LocalImport

SETTING_LEASE = "lease-stamp"
SETTING_ARCHIVE = "archive"
SETTING_WORKFLOWS = "workflows"
SETTING_IMAGES_DIGEST = "images-digest"
SETTING_HELD_DIGEST = "held-digest"
SETTING_CTR = "ctr"
SETTING_SOCKET = "containerd-socket"
SETTING_SERVER = "local-server"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The surroundings of one step.

    Args:
        api: the API server.
        kubectl: the program.
        kubeconfig: a file with the one context of this run.
        namespace: the Instance's namespace.
        check_lease: raises when this run may no longer write.
        lease: the stamp that a publish carries, or `None`.
        say: prints one line of the contract.
        progress: shows what takes long, on a terminal; `None` takes it away.
        settings: what the wrapper handed over.
    """

    api: Api
    kubectl: Path
    kubeconfig: Path
    namespace: str
    check_lease: Callable[[], None]
    lease: str | None
    say: Callable[[str], None]
    progress: Callable[[str | None], None]
    settings: Mapping[str, str]

    def local_import(self) -> LocalImport | None:
        """Return how an image reaches the node of the local cluster, if it does."""
        if SETTING_CTR not in self.settings:
            return None
        return LocalImport(
            ctr=Path(self.settings[SETTING_CTR]),
            socket=Path(self.settings[SETTING_SOCKET]),
            server=self.settings[SETTING_SERVER],
        )


def import_settings(local_import: LocalImport | None) -> dict[str, str]:
    """Return the settings that `local_import` reads back."""
    if local_import is None:
        return {}
    return {
        SETTING_CTR: str(local_import.ctr),
        SETTING_SOCKET: str(local_import.socket),
        SETTING_SERVER: local_import.server,
    }
