"""What a step needs beside its inputs: the cluster, the programs, the Lease and a voice.

Inputs stand in a plan and in a preview, so they are few and readable. What a step merely uses
comes from its run: where kubectl is, what a publish sends, who holds the Lease.

Source: design §5.2 (providers check the Lease and their parent before each external write).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..api import Api

SETTING_LEASE = "lease-stamp"
SETTING_BEGAN = "began"
"""When the run began, by the clock of the API server; pods that are older are of another run."""
SETTING_PARCEL = "parcel"
"""The folder of what a publish sends."""
SETTING_WORKFLOWS = "workflows"
SETTING_IMAGES_DIGEST = "images-digest"
SETTING_HELD_DIGEST = "held-digest"
SETTING_OBJECTS = "objects"
"""Where a plain run keeps the wanted objects that its steps apply, by the resource's name."""
SETTING_FORCE = "force"
"""Present when images are delivered again, whatever the nodes hold."""


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
