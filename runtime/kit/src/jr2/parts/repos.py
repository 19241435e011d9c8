"""Repos: what a Repo Slot of a Workspace can be bound to, and the rules on slots.

A slot is the Machine's own word for a Repo, and the directory `/work/<slot>`. A Repo is known by
its url alone.

Source: spec/authoring.md §2.10 and §3.4, ADR-0051.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ..repo_identity import RepoUrlError, identify
from .opening import Opening, is_open

D = TypeVar("D")

SLOT: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Binding:
    """What a Repo Slot resolves to.

    Args:
        url: an https, http, ssh or git url, or `user@host:path`.
        ref: the branch, tag or commit that the Worktree starts from; the Repo's default branch
            when absent.
    """

    url: str
    ref: str | None = None


RepoValue = str | Binding | Opening | Callable[[D], str | Binding]
"""What a slot takes: a url, a Binding, `OPEN`, or a function of the door, called for each run."""


LONGEST_SLOT: Final = 255
"""Characters of a Repo Slot: no file system of a node takes a longer name."""


def slot_problem(slot: object) -> str | None:
    """Return why a text cannot be a Repo Slot, or `None`."""
    if isinstance(slot, str) and SLOT.fullmatch(slot):
        if len(slot) <= LONGEST_SLOT:
            return None
        return (
            f"a Repo Slot of {len(slot)} characters: it becomes the directory /work/<slot>, so it "
            f"has at most {LONGEST_SLOT}"
        )
    return (
        f"a Repo Slot {slot!r}: it becomes the directory /work/<slot>, so it starts with a letter "
        "and has letters, digits, `.`, `_` and `-` only"
    )


def value_problem(slot: str, value: Any) -> str | None:
    """Return why a slot cannot have a value, or `None`."""
    if is_open(value) or (callable(value) and not isinstance(value, type)):
        return None
    return binding_problem(slot, value)


def binding_problem(slot: str, value: Any) -> str | None:
    """Return why a url or Binding cannot be cloned, or `None`; what a per-run mapper gave, too."""
    if isinstance(value, str):
        value = Binding(value)
    if not isinstance(value, Binding):
        return (
            f'the Repo Slot "{slot}" with an object of type {type(value).__name__}: give a url, a '
            "Binding, OPEN, or a function of the door"
        )
    if not isinstance(value.url, str) or not value.url.strip():
        return f'the Repo Slot "{slot}" with an empty url'
    if value.ref is not None and (not isinstance(value.ref, str) or not value.ref.strip()):
        return f'the Repo Slot "{slot}" with an empty ref'
    try:
        identify(value.url)
    except RepoUrlError as wrong:
        return f'the Repo Slot "{slot}" with a url that is none: {wrong}'
    return None


def bound(value: Any) -> Binding | None:
    """Return the Binding of a slot that needs no run to know it; `None` for one that is not."""
    if isinstance(value, str):
        return Binding(value)
    return value if isinstance(value, Binding) else None
