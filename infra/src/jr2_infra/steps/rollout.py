"""Wait for a rollout inside the engine's run.

Source: design §5.4.
"""

from __future__ import annotations

from collections.abc import Mapping

from .. import kubectl
from ..rollout.wait import wait
from ..workloads import workload_of
from .surroundings import SETTING_BEGAN, Surroundings


def wait_for_rollout(inputs: Mapping[str, str], around: Surroundings) -> None:
    """Wait until the pods run the expected image.

    Raises:
        StepFailed: they do not, with evidence and diagnosis.
    """
    wait(
        around.api,
        workload_of(inputs),
        say=around.say,
        progress=around.progress,
        check_lease=around.check_lease,
        began=around.settings[SETTING_BEGAN],
        kubectl=lambda workload: kubectl.RolloutStatus(around.kubectl, around.kubeconfig, workload),
    )
