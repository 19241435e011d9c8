"""`jr2 up`: make the cluster agree with the Instance folder.

Source: seed 000, spec/converge.md §2.5 and §4.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from .. import env_file, instance, interrupt, output
from ..target import Context, Namespace
from ..tooling import look_for_tooling


def up(
    *,
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], negative="")] = False,
    force: Annotated[bool, Parameter(negative="")] = False,
    skip_provider_preflight: Annotated[bool, Parameter(negative="")] = False,
    namespace: Namespace = None,
    context: Context = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Make the cluster of the kubectl context agree with the Instance folder.

    A second run changes nothing. The exit code is 0 only when the last line says `converged`.

    Args:
        yes: answer yes to the question before a namespace is used for the first time.
        force: build each Sandbox Image again, also when its tag did not change.
        skip_provider_preflight: do not ask the model providers; a warning names each model, and
            nothing is said when no Agent names one.
        namespace: the namespace of the Instance; without it, the name that the config gives.
        context: a context of the kubeconfig; without it, the current one.
        json: write the steps to stdout as events, one JSON object a line.
    """
    out = output.current()
    if json:
        out.stream_events()
    root = instance.root(Path.cwd())
    # They are asked for their versions while the folder is checked.
    find_tooling = look_for_tooling()
    from jr2_infra import converge

    interrupt.ends_with(
        lambda: (
            "interrupted — run `jr2 up` again to finish"
            if converge.has_written()
            else "interrupted — nothing was applied"
        )
    )
    options = converge.UpOptions(
        root=root,
        context=context,
        namespace=namespace,
        yes=yes,
        force=force,
        skip_provider_preflight=skip_provider_preflight,
    )
    converge.up(options, find_tooling, out, out, before_config=lambda: env_file.load(root, out))
    return 0
