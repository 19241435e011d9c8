"""What an entry of `git.credentials` gives a repository: a Secret for its token, and the fence.

The Converge writes a Secret under the name that `clone_secret` gives, and the Repo cache reads it
under the same one. The name follows from `match` alone, so it is the same in each run, and a token
that is renewed replaces the one that was there.

A url that comes with a run could name any host, and so spend a credential of the cluster against
it. `fence_refusal` says why such a url is not taken; a url that a Machine binds is code of the
Instance and passes no fence.

Source: seed 003 (Give the cluster git credentials), spec/authoring.md §3.3, ADR-0051.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from . import names, repo_identity
from .repo_identity import Entry

_PUSH: Final = "push:"
"""No `match` starts so and names a host, so a Secret for pushes is never one for clones."""


def clone_secret(match: str) -> str:
    """Return the name of the Secret that holds the token of an entry.

    Args:
        match: the entry's `match`.
    """
    return f"{names.GIT_SECRET_PREFIX}{hashlib.sha256(match.encode()).hexdigest()[:8]}"


def push_secret(match: str) -> str:
    """Return the name of the Secret that holds the token that an entry gives to pushes alone.

    Args:
        match: the entry's `match`.
    """
    return clone_secret(_PUSH + match)


def fence_refusal(sandbox: str, slot: str, url: str, entries: Sequence[Entry]) -> str | None:
    """Return why a Sandbox does not take a url that came with a run, or `None` when it does.

    Args:
        sandbox: the name of the Sandbox.
        slot: the Repo Slot.
        url: what the run gave.
        entries: the config's `git.credentials`.

    Raises:
        RepoUrlError: the url is none.
    """
    identity = repo_identity.identity(url)
    if repo_identity.entry_for(identity, entries) is not None:
        return None
    listed = ", ".join(f'"{entry.match}"' for entry in entries) or "none"
    return (
        f'Sandbox "{sandbox}" refuses the per-run repo {repo_identity.shown(url)} for slot '
        f'"{slot}": no git.credentials entry matches "{identity}" (entries: {listed}). A per-run '
        f"url can spend the cluster's credential against any host, so {names.CONFIG_FILE} must "
        "admit it by prefix (ADR-0051)."
    )
