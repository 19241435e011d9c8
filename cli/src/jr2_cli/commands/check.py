"""`jr2 check`: the checks of `jr2 up` that need no cluster.

Source: seed 000 (What jr2 up does), spec/converge.md §2.5.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from .. import env_file, instance, output


def check(*, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Check the config, the types and the Machines of the Instance, with no cluster.

    The lines are those of `jr2 up`, from the same code.

    Args:
        json: write the steps to stdout as events, one JSON object a line.
    """
    out = output.current()
    if json:
        out.stream_events()
    root = instance.root(Path.cwd())
    from jr2_infra import check as checks

    checks.check(root, out, before_config=lambda: env_file.load(root, out))
    return 0
