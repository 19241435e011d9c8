"""The programs that the Converge starts, found on this machine.

Source: design §7.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

from jr2 import errors
from jr2_infra.tooling import Tooling

_NAMES: Final = ("pulumi", "pulumi-resource-kubernetes", "kubectl")


def tooling() -> Tooling:
    """Find the engine, its plugin and kubectl, and the local cluster when one runs.

    Raises:
        StepFailed: a program is missing; the text names each and `jr2 tools install`.
    """
    from . import local_cluster, tools
    from .tools import catalogue, lookup

    # A program on PATH is asked for its version, which takes a while: they are asked at once.
    with ThreadPoolExecutor(max_workers=len(_NAMES) + 1) as pool:
        local_import = pool.submit(local_cluster.local_import)
        found = list(pool.map(lambda name: lookup.find(catalogue.BY_NAME[name]), _NAMES))
    missing = [item for item in found if item.path is None]
    if missing:
        raise errors.StepFailed(tools.missing_text(missing))
    pulumi, plugin, kubectl = (item.path for item in found if item.path is not None)
    return Tooling(
        pulumi=pulumi,
        kubernetes_plugin=plugin,
        kubectl=kubectl,
        local_import=local_import.result(),
    )
