"""`jr2 down`: remove the Instance from the cluster.

Source: seed 000 (Clean up), spec/converge.md §2.5.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from .. import instance, output
from ..target import Context, Namespace


def down(
    *,
    all: Annotated[bool, Parameter(negative="")] = False,
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], negative="")] = False,
    force: Annotated[bool, Parameter(negative="")] = False,
    namespace: Namespace = None,
    context: Context = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Delete the namespace of the Instance, with its runs and their store.

    Args:
        all: remove the operator too, with its CRDs; every Instance of the cluster needs it.
        yes: do not ask.
        force: with --all, also when other Instances use the operator.
        namespace: the namespace of the Instance; without it, the name that the config gives.
        context: a context of the kubeconfig; without it, the current one.
        json: write the steps to stdout as events, one JSON object a line.
    """
    out = output.current()
    if json:
        out.stream_events()
    root = instance.root(Path.cwd())
    from jr2_infra import down as removal

    removal.down(
        root=root,
        context=context,
        namespace=namespace,
        all_=all,
        yes=yes,
        force=force,
        reporter=out,
    )
    return 0
