"""The rules on Machines that need more than Machines and config: the environment, and the disk.

Both come after what the walk judges, and before the Charts; neither needs a cluster.

Source: seed 003 (Rules), spec/authoring.md §5 item 10, design §3.1 (image folder).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence

from jr2.config import GitCredential
from jr2.walk import Problem

from .facts.instance import WorkflowFacts
from .git import rules
from .images.sandbox import contexts


def problems(
    workflows: Sequence[WorkflowFacts],
    credentials: Sequence[GitCredential],
    environ: Mapping[str, str],
) -> list[Problem]:
    """Return every rule that is not met.

    Args:
        workflows: what the walk said of each.
        credentials: the config's `git.credentials`.
        environ: the variables that `.env` has filled.
    """
    images = dict.fromkeys(
        image
        for workflow in workflows
        for image in workflow.parts.images
        if contexts.is_folder(image)
    )
    return rules.problems(workflows, credentials, environ) + [
        Problem(prefix="error: ", message=text, rule="image")
        for image in images
        if (text := _unreadable(image)) is not None
    ]


def _unreadable(image: str) -> str | None:
    folder = contexts.folder_of(image)
    try:
        os.scandir(folder).close()
    except OSError as error:
        code = errno.errorcode.get(error.errno or 0, str(error.errno))
        return (
            f"the Sandbox Image context {folder} cannot be read ({code}) — a `workspace()` names "
            'its image with `context(__file__, "<dir>")`, so that directory must exist beside the '
            "Machine's own module (ADR-0037/0049)."
        )
    return None
