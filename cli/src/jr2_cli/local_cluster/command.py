"""`jr2 cluster create|start|stop|delete|status`.

Source: design §7.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import cyclopts

from .. import output
from ..groups import verb

if TYPE_CHECKING:
    from .lifecycle import Cluster

app = cyclopts.App(
    name="cluster",
    help="The local cluster: a real Kubernetes of one node, as processes of this machine.",
)


@verb(app, "create")
def create() -> None:
    """Make the local cluster, or start the one that is there, and wait until it can be used.

    It needs root on Linux and the programs of `jr2 tools install`. The context `jr2-local` is put
    into the first file of KUBECONFIG, or ~/.kube/config.
    """
    _cluster().create()


@verb(app, "start")
def start() -> None:
    """Start the cluster that was stopped, with its data."""
    _cluster().start()


@verb(app, "stop")
def stop() -> None:
    """End every process of the cluster and of its pods; the data stay."""
    _cluster().stop()


@verb(app, "delete")
def delete(*, yes: Annotated[bool, cyclopts.Parameter(negative="")] = False) -> None:
    """Take the cluster away with its data, and the context out of the kubeconfig.

    Parameters
    ----------
    yes
        Do not ask.
    """
    _cluster().delete(yes=yes)


@verb(app, "status")
def status(*, json: Annotated[bool, cyclopts.Parameter(negative="")] = False) -> int:
    """Show the cluster and the health of each process; exit 1 unless all of it works.

    Parameters
    ----------
    json
        Print JSON.
    """
    from . import report
    from .layout import Layout
    from .node import machine

    machine.check_platform(sys.platform, os.geteuid(), "status")
    files = Layout()
    found = report.cluster_report(files)
    out = output.current()
    if json:
        out.result(report.as_json(found, files))
    else:
        out.text(report.as_text(found, files))
    return 0 if found.is_healthy else 1


def _cluster() -> Cluster:
    from . import lifecycle

    return lifecycle.Cluster(reporter=output.current(), environ=os.environ)
