"""The programs that the Converge starts, found on this machine.

Source: design §7.
"""

from __future__ import annotations

from jr2_infra.tooling import Tooling


def tooling() -> Tooling:
    """Find the engine, its plugin and kubectl, and the local cluster when one runs.

    Raises:
        StepFailed: a program is missing; the text names `jr2 tools install`.
    """
    from . import local_cluster, tools

    return Tooling(
        pulumi=tools.require("pulumi"),
        kubernetes_plugin=tools.require("pulumi-resource-kubernetes"),
        kubectl=tools.require("kubectl"),
        local_import=local_cluster.local_import(),
    )
