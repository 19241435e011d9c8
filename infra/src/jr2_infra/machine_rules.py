"""The rules on Machines that need more than Machines and config: the environment, and the disk.

Both come after what the walk judges, and before the Charts; neither needs a cluster.

Source: seed 003 (Rules), spec/authoring.md §5 item 10, design §3.1 (image folder).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from jr2 import repo_identity
from jr2.config import GitCredential
from jr2.walk import Problem, WalkedSandbox

from .facts.instance import WorkflowFacts


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
    pushes = [
        Problem(prefix="error: ", message=text, rule="push")
        for workflow in workflows
        for sandbox in workflow.parts.sandboxes
        for text in _pushes(workflow.name, sandbox, credentials, environ)
    ]
    images = dict.fromkeys(
        image for workflow in workflows for image in workflow.parts.images if _is_folder(image)
    )
    return pushes + [
        Problem(prefix="error: ", message=text, rule="image")
        for image in images
        if (text := _unreadable(image)) is not None
    ]


def folder_of(image: str) -> Path:
    """Return the folder of a Sandbox Image that is a `file:` URL."""
    return Path(unquote(urlsplit(image).path))


def _pushes(
    workflow: str,
    sandbox: WalkedSandbox,
    credentials: Sequence[GitCredential],
    environ: Mapping[str, str],
) -> list[str]:
    """Return what is wrong with pushes over https: their token is a variable that must be set."""
    route = "".join(f' → "{state}"' for state in sandbox.route)
    found: list[str] = []
    for push in sandbox.pushes:
        repo = repo_identity.identify(push.url)
        entry = repo_identity.entry_for(repo.identity, credentials)
        if entry is None or repo.way not in ("https", "http"):
            continue
        token = entry.token if entry.push is None else entry.push.token
        if token is not None and not environ.get(token):
            found.append(
                f'Workspace of workflow "{workflow}"{route}: the push of Repo Slot "{push.slot}" '
                f'({repo_identity.shown(push.url)}): git.credentials entry "{entry.match}" cannot '
                f"push — its token's variable {token} is not set — set it in .env (ADR-0051)"
            )
    return found


def _is_folder(image: str) -> bool:
    return image.startswith("file:")


def _unreadable(image: str) -> str | None:
    folder = folder_of(image)
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
