"""`jr2 chart`: draw each Machine as a picture that a pull request shows.

Source: design §4.6.
"""

from __future__ import annotations

from pathlib import Path

from .. import env_file, instance, output


def chart(*workflow: str) -> int:
    """Write charts/<workflow>.mmd, a Mermaid state diagram of the Workflow's Machine.

    Args:
        workflow: which Workflows; without one, all of the folder.
    """
    out = output.current()
    root = instance.root(Path.cwd())
    from jr2_infra import check as checks

    checks.write_charts(root, workflow, out, before_config=lambda: env_file.load(root, out))
    return 0
