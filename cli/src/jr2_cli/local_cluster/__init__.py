"""The local cluster: a real Kubernetes of one node, as processes of this machine.

`local_import` is what the rest of the command asks; `jr2 cluster` makes and ends it.

Source: design §7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jr2_infra.tooling import LocalImport

__all__ = ["local_import"]


def local_import() -> LocalImport | None:
    """How an image reaches the local cluster; `None` when it does not run, or is not ours."""
    from jr2_infra.tooling import LocalImport

    from .. import tools
    from . import layout
    from .supervision import remains

    files = layout.Layout()
    if not remains.is_running(files.supervisor_lock):
        return None
    ctr = tools.locate("ctr")
    if ctr is None:
        return None
    return LocalImport(
        ctr=ctr,
        socket=files.containerd_socket,
        server=layout.SERVER,
        buildctl=tools.locate("buildctl"),
        buildkit=files.buildkit_socket,
    )
