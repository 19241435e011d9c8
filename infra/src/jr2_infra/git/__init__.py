"""Git credentials of an Instance: tokens, ssh keys, and what pushes need.

`rules` judges the folder, `wants` says what the cluster gets, `needs` what it lacks, `choose` asks a
person for a key, and `keys` makes or reads one.

Source: seed 003 (Give the cluster git credentials), spec/converge.md §9.2, §9.5 and §9.6.
"""

from __future__ import annotations

from .choose import choose_keys, lost, reminder, unanswered
from .keys import DeployKey
from .needs import MissingKey
from .wants import GitWants, git_wants, named_secrets

__all__ = [
    "DeployKey",
    "GitWants",
    "MissingKey",
    "choose_keys",
    "git_wants",
    "lost",
    "named_secrets",
    "reminder",
    "unanswered",
]
